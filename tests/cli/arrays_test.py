"""Ranks on arrays of one memory: the bits of ranks with memories of their own, and cycles in which the arrays wait."""
# SPDX-License-Identifier: Apache-2.0
import json

from support import FEW, SOURCE, ProgramTest, main

ARRAY = ["--backend", "systolic", "--contract", "bf16-exact", "--threads", "1"]
RUN = ["train", *FEW, "--batch", "2", "--steps", "2", *ARRAY]


class ArraysTest(ProgramTest):
    def machine(self, name="mmu4-vector", **changes):
        machine = json.loads((SOURCE / "systolic/machines" / f"{name}.json").read_text())
        path = self.folder / f"{name}-{'-'.join(map(str, changes.values()))}.json"
        path.write_text(json.dumps(machine | changes))
        return path

    def test_ranks_keep_their_bits_and_wait_for_each_other(self):
        def run(name, *options):
            return self.document(*RUN, "--out", name, *options)["results"][0]
        own, shared = (run(name, "--ranks", "2", "--machine", self.machine(arrays=arrays))
                       for name, arrays in (("own", 1), ("shared", 2)))
        for fact in "losses", "weights_sha256":
            self.assertEqual(shared[fact], own[fact])
        self.assertEqual(shared["time"]["kind"], "simulated")
        self.assertGreater(shared["time"]["value"], 1.05 * own["time"]["value"])
        alone = [run(f"alone{arrays}", "--machine", self.machine(arrays=arrays)) for arrays in (1, 2)]
        self.assertEqual(alone[0]["time"], alone[1]["time"])

    def test_ranks_that_do_not_run_the_same_programs_are_refused(self):
        two = ["--machine", self.machine(arrays=2), "--out", "refused"]
        for says, *options in (
                (r"3 ranks on the 2 arrays of the machine mmu4-vector; take fewer, or give its file more", "--ranks", "3"),
                (r"3 rows do not divide by 2 ranks; give a batch that does", "--ranks", "2", "--batch", "3"),
                (r"the ranks of this strategy have different ones; take --strategy dp", "--ranks", "2",
                 "--strategy", "pipeline:2"),
                (r"only the twin simulates several arrays on one memory", "--ranks", "2", "--simulate", "both")):
            self.assertRegex(self.expect_error(2, *RUN, *two, *options).stderr, says)

    def test_arrays_sum_and_count_their_waits(self):
        def rows(*options):
            return self.document("bench", "all-reduce", "--bytes", "1KiB..64KiB", "--algorithm", "ring,direct", *options)["results"]
        eight = ["--machine", self.machine(arrays=8)]
        for row in rows(*eight, "--ranks", "2,3,8"):
            self.assertTrue(row["right"], row)
            self.assertEqual((row["transport"], row["median"]["kind"]), ("arrays", "simulated"))
            self.assertAlmostEqual(row["median"]["value"], row["cycles"] / 700e6)
            self.assertGreater(row["arbiter_wait_cycles"], 0)
        two = [row["cycles"] for row in rows("--machine", self.machine(arrays=2), "--ranks", "2")]
        self.assertEqual(two, [row["cycles"] for row in rows(*eight, "--ranks", "2")])  # idle arrays take no time
        error = self.expect_error(2, "bench", "all-reduce", "--machine", "mmu4-vector", "--bytes", "4").stderr
        self.assertRegex(error, r'2 ranks on a machine with 1 array\(s\); give its file "arrays": 2')
        error = self.expect_error(2, "bench", "all-reduce", "--machine", self.machine("mmu4", arrays=2), "--bytes", "4").stderr
        self.assertRegex(error, r'has no vector unit, which adds; give its file "vector_rows"')
        error = self.expect_error(2, "bench", "all-reduce", *eight, "--transport", "mpi", "--bytes", "4").stderr
        self.assertRegex(error, "leave out --transport and --repeats")

    def test_bench_shows_the_parts_of_a_step_on_arrays(self):
        step = ["bench", "--mode", "train", "--model", "unet-s", "--base", "2", "--depth", "1", "--size", "16",
                "--batch", "4", *ARRAY[:4], "--machine"]
        one = self.document(*step, self.machine(arrays=1))["results"][0]
        self.assertNotIn("ranks", one)
        two = self.document(*step, self.machine(arrays=2), "--ranks", "2")["results"][0]
        parts = two["ranks"]
        self.assertEqual((two["batch"], parts["count"]), (4, 2))
        self.assertEqual(parts["cycles"], parts["compute_cycles"] + parts["all_reduce_cycles"])
        self.assertAlmostEqual(two["median"]["value"], parts["cycles"] / 700e6)
        self.assertEqual(two["median"]["kind"], "simulated")
        self.assertLess(two["median"]["value"], one["median"]["value"])
        self.assertLess(0, parts["arbiter_wait_cycles"])
        sums = self.document("bench", "all-reduce", "--machine", self.machine(arrays=2), "--ranks", "2", "--algorithm", "ring",
                             "--bytes", str(parts["all_reduce_bytes"]))["results"][0]
        self.assertEqual(parts["all_reduce_cycles"], sums["cycles"])
        self.assertRegex(self.run_program(*step, self.machine(arrays=2), "--ranks", "2").stdout,
                         rf"{parts['cycles']} cycles of each of 2 ranks .simulated.; waits for other arrays "
                         rf"{parts['arbiter_wait_cycles']} ")
        error = self.expect_error(2, *step, self.machine(arrays=2), "--ranks", "3").stderr
        self.assertRegex(error, r"3 ranks on a machine with 2 array\(s\)|3 ranks on the 2 arrays")
        error = self.expect_error(2, *step, self.machine(arrays=2), "--ranks", "2", "--batch", "3").stderr
        self.assertRegex(error, "a batch of 3 on 2 ranks; give a batch that is a multiple of the ranks")


if __name__ == "__main__":
    main()
