"""Single operators on int8 machines: bench and trace of products and convolutions of integers."""
# SPDX-License-Identifier: Apache-2.0
import json
import struct

from support import ProgramTest, main

INT8 = ["--contract", "int8", "--machine", "mmu16-int8"]


def npy(shape, values, kind="|i1", form="b"):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(
        f"<{len(values)}{form}", *values)


class Int8Operators(ProgramTest):
    def node(self, *arguments):
        return self.document("trace", *arguments)["results"][0]["array"]["nodes"][0]

    def test_a_product_counts_its_multiply_adds_and_bytes(self):
        m, k, n = 40, 64, 33
        for scales, result in (([], 4), (["--scales", "0.5,0.25,64"], 1)):
            node = self.node("matmul", "--m", str(m), "--k", str(k), "--n", str(n), *INT8, *scales)
            counters = node["counters"]
            self.assertEqual(counters["macs"], m * k * n)
            self.assertEqual(counters["dram_load_bytes"], m * k)
            self.assertEqual(counters["dram_weights_bytes"], k * n)
            registers = 3 * 4 * n if scales else 0  # bias, multiplier, shift of each column
            self.assertEqual(counters["dram_store_bytes"], m * n * result + registers)

    def test_rtl_and_twin_agree_on_a_product_and_both_passes_of_a_convolution(self):
        listed = self.document("machine", "list")["results"]
        if not any(m["name"] == "mmu16-int8" and m["rtl"] != "not built" for m in listed):
            self.skipTest("this build has no RTL of int8")
        both = [*INT8, "--simulate", "both", "--scales", "0.5,0.25,8"]
        self.succeed("trace", "matmul", "--m", "9", "--k", "20", "--n", "18", *both)
        for direction in ("forward", "data"):
            self.succeed("trace", "conv", "--shape", "3,5,6,7", "--pass", direction, *both)

    def test_every_pe_shows_the_given_operands(self):
        a, b = [1, -2, 3, 4, 5, -6], [7, -8, 9, 10, -11, 12]
        (self.folder / "a.npy").write_bytes(npy((2, 3), a))
        (self.folder / "b.npy").write_bytes(npy((3, 2), b))
        self.succeed("trace", "matmul", "--m", "2", "--k", "3", "--n", "2", *INT8, "--operands", "a.npy,b.npy",
                     "--per-pe", "pes.json")
        steps = json.loads((self.folder / "pes.json").read_text())["steps"]
        sums = {}
        for step in steps:
            if step["row"] == 2:  # the last product of the chain
                sums[step["slot"], step["column"]] = step["sum_out"]
        expected = {(i, j): sum(a[3 * i + r] * b[2 * r + j] for r in range(3)) for i in range(2) for j in range(2)}
        self.assertEqual(sums, expected)

    def test_a_convolution_takes_given_operands_in_both_formats(self):
        x, w = [1, 2, 3, 4], [5]
        for contract, kind, form in ((INT8, "|i1", "b"), (["--machine", "mmu4"], "<f4", "f")):
            (self.folder / "x.npy").write_bytes(npy((1, 2, 2), x, kind, form))
            (self.folder / "w.npy").write_bytes(npy((1, 1, 1, 1), w, kind, form))
            self.succeed("trace", "conv", "--shape", "1,1,2,2", "--window", "1", *contract, "--operands",
                         "x.npy,w.npy", "--per-pe", "pes.json")
            steps = json.loads((self.folder / "pes.json").read_text())["steps"]
            self.assertEqual([step["sum_out"] for step in steps if step["row"] == 0 and step["column"] == 0],
                             [5, 10, 15, 20])

    def test_bench_times_integers_on_the_array_and_on_the_processor(self):
        for backend, machine in (("systolic", ["--machine", "tpu-v1"]), ("cpu", [])):
            common = ["--backend", backend, *machine, "--contract", "int8", "--repeats", "1"]
            product = self.document("bench", "matmul", "--sizes", "32", *common)["results"][0]
            self.assertEqual((product["name"], product["contract"]), ("matmul/32x32x32", "int8"))
            conv = self.document("bench", "conv", "--shape", "4,6,8,8", *common, "--scales", "1,1,50")["results"][0]
            self.assertEqual(conv["name"], "conv/4>6@8x8k3/scales-1,1,50")
            self.assertGreater(conv["gflops"], 0)

    def test_what_int8_does_not_have_is_refused(self):
        self.expect_error(2, "trace", "conv", *INT8, "--pass", "weights", says="no gradient of the weights")
        self.expect_error(2, "trace", "matmul", "--scales", "1,1,1", says="--contract")
        self.expect_error(2, "trace", "matmul", *INT8, "--scales", "1,0,1", says='"0" is no scale')
        self.expect_error(2, "trace", "matmul", *INT8, "--scales", "1,1", says="three scales")
        self.expect_error(4, "trace", "matmul", "--machine", "tpu-v1", says="add --contract int8")
        (self.folder / "a.npy").write_bytes(npy((2, 3), [0] * 6))
        self.expect_error(2, "trace", "matmul", *INT8, "--operands", "a.npy,a.npy",
                          says='"a.npy" holds i8[2, 3]; the operator needs i8[1, 8, 8]')


if __name__ == "__main__":
    main()
