"""A machine with a vector unit trains without its host. Its work is counted, priced, and named where it is refused."""
# SPDX-License-Identifier: Apache-2.0
import json

from support import FEW, TINY, ProgramTest, main, make_data, png_bytes

EXACT = ["--contract", "bf16-exact"]
ARRAY = ["--backend", "systolic", *EXACT]
VECTORS, PLAIN = [*ARRAY, "--machine", "mmu4-vector"], [*ARRAY, "--machine", "mmu4"]


class VectorUnit(ProgramTest):
    def test_a_network_trains_without_the_host_to_the_bits_of_the_cpu(self):
        train = [*FEW, "--epochs", "1"]
        array = self.train(*train, *VECTORS)
        self.assert_same_training(array, self.train(*train, *EXACT))
        self.assertEqual(array["host"]["nodes"], 0)
        self.assertGreater(self.train(*train, *PLAIN)["host"]["nodes"], 20)

    def test_losses_of_several_classes_train_without_the_host(self):
        data = make_data(self.folder / "data", [(20, 17), (16, 16)])
        for i, (width, height) in enumerate([(20, 17), (16, 16)]):
            mask = png_bytes(width, height, sample=lambda x, y, c: (x % 3) * 100)
            (data / "masks" / f"{i:02}.png").write_bytes(mask)
        train = [*TINY, "--data", "data", "--classes", "3", "--steps", "2"]
        for name, losses in (("cross-entropy", []), ("dice", ["--loss", "dice"]),
                             ("weighted", ["--loss", "dice-cross-entropy", "--class-weights", "balanced", "--border-weight", "10"])):
            with self.subTest(name):
                array = self.train(*train, *losses, *VECTORS, "--out", f"array-{name}")
                self.assert_same_training(array, self.train(*train, *losses, *EXACT, "--out", f"cpu-{name}"))
                self.assertEqual(array["host"]["nodes"], 0)

    def test_only_the_vector_unit_counts_and_prices_vectors(self):
        def nodes(machine):
            return self.document("bench", "--mode", "train", *TINY, *machine, "--layers")["results"][0]["array"]

        def vectors(node):
            parts = {part["part"] for part in node["energy"]["parts"]}
            return ({value for name, value in node["counters"].items() if name.startswith("vector_")},
                    {part for part in parts if part.startswith("vector ")})
        products = nodes(PLAIN)
        for node in products:
            self.assertEqual(vectors(node), ({0}, set()), node["node"])
        names = {node["node"] for node in products}
        for node in nodes(VECTORS):
            counters, parts = vectors(node)
            self.assertEqual(len(parts), 4, node["node"])
            if node["node"] in names:
                self.assertEqual(counters, {0})
                continue
            self.assertEqual(node["counters"]["macs"], 0)
            self.assertLess(node["counters"]["vector_cycles"], node["counters"]["cycles"])
            self.assertGreater(node["counters"]["vector_cycles"], node["counters"]["cycles"] / 2)
            memory = next(part for part in node["energy"]["parts"] if part["part"] == "vector memory")
            self.assertEqual(memory["events"], 32 * (node["counters"]["vector_reads"] + node["counters"]["vector_writes"]))

    def test_the_host_takes_what_the_unit_refuses_and_explain_says_why(self):
        (self.folder / "small.json").write_text(json.dumps(
            {"name": "small", "rows": 4, "columns": 4, "vector_rows": 256}))
        explained = self.document("explain", *TINY, *ARRAY, "--machine", "small.json")["results"][0]
        on_host = {node["op"].split("(")[0]: node["why"] for node in explained["nodes"] if node["device"].startswith("cpu")}
        self.assertIn("the vector memory has fewer than 512 rows", on_host["BatchNormalization"])
        self.assertEqual(explained["host"]["nodes"], len([n for n in explained["nodes"] if n["device"].startswith("cpu")]))


if __name__ == "__main__":
    main()
