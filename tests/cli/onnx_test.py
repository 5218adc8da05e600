"""`triptych run` and `triptych import` on ONNX files."""
# SPDX-License-Identifier: Apache-2.0
import math

from onnx_files import *
from support import *

DIR = ["--out", "out", "--threads", "1"]


class OnnxFiles(ProgramTest):
    def setUp(self):
        super().setUp()
        save_relu(self.folder)

    def save(self, *arguments, **options):
        (self.folder / "model.onnx").write_bytes(model(*arguments, **options))

    def output(self, number=0):
        return load_npy(self.folder / f"out/output_{number}.npy")

    def test_outputs_come_in_the_models_order(self):
        self.save([node("Add", ["a", "b"], ["sum"]), node("Sub", ["a", "b"], ["difference"])],
                  [value_info("a", [2]), value_info("b", [2])],
                  [value_info("sum", [2]), value_info("difference", [2])])
        save_npy(self.folder / "a.npy", (2,), [5, 7])
        save_npy(self.folder / "b.npy", (2,), [1, 2])
        self.succeed("run", "model.onnx", "--input", "b=b.npy", "--input", "a.npy", *DIR)
        self.assertEqual(self.output(0), ("<f4", (2,), [6, 9]))
        self.assertEqual(self.output(1), ("<f4", (2,), [4, 5]))

    def test_what_it_reads_stays_and_what_an_earlier_run_left_goes(self):
        self.save([node("Neg", ["x"], ["minus"]), node("Relu", ["x"], ["y"])], [value_info("x", ["batch", 3])],
                  [value_info("minus", ["batch", 3]), value_info("y", ["batch", 3])])
        self.succeed("run", "model.onnx", "--input", "x.npy", *DIR)
        first = {name: (self.folder / f"out/output_{name}.npy").read_bytes() for name in (0, 1)}
        save_relu(self.folder)
        for name in first:  # replaced, or left over
            for more in ([], ["--overwrite"]):
                self.expect_error(2, "run", "model.onnx", "--input", f"out/output_{name}.npy", *DIR, *more,
                                  says=[f"output_{name}.npy", "own input"])
        for name, content in first.items():
            self.assertEqual((self.folder / f"out/output_{name}.npy").read_bytes(), content)
        self.succeed("run", "model.onnx", "--input", "x.npy", *DIR)
        self.assertEqual(self.output(), ("<f4", (2, 3), [0, 2, 0, 4, 0, 6]))
        self.assertFalse((self.folder / "out/output_1.npy").exists())
        (self.folder / "model.onnx").rename(self.folder / "output_0.npy")
        kept = (self.folder / "output_0.npy").read_bytes()
        self.expect_error(2, "run", "output_0.npy", "--input", "x.npy", "--out", ".", "--overwrite",
                          says="own input")
        self.assertEqual((self.folder / "output_0.npy").read_bytes(), kept)

    def test_a_batch_is_said_once(self):
        few = ["--threads", "1", "--repeats", "1"]
        row, = self.document("bench", "--model", "model.onnx", "--bind", "batch=64", *few)["results"]
        self.assertEqual(row["batch"], 64)
        row, = self.document("bench", "--model", "model.onnx", "--bind", "batch=4", "--batch", "4", *few)["results"]
        self.assertEqual(row["batch"], 4)
        for command in ("bench", "explain", "trace"):
            self.expect_error(2, command, "--model", "model.onnx", "--mode", "infer", "--bind", "batch=64", "--batch",
                              "2", says=["--bind", "64", "--batch 2"])
        for command in ("explain", "trace"):
            row = self.document(command, "--model", "model.onnx", "--mode", "infer", "--bind", "batch=3")["results"][0]
            self.assertEqual(row["batch"], 3)

    def test_every_machine_gives_the_same_bits_under_bf16_exact(self):
        self.save([node("MatMul", ["x", "w"], ["y"])], [value_info("x", ["batch", 3])],
                  [value_info("y", ["batch", 2])],
                  [tensor("w", (3, 2), [0.1, -0.7, 1.3, 2.9, -3.1, 0.3])])
        seen = set()
        for backend in ("cpu", "cuda-emulated", "systolic"):
            self.succeed("run", "model.onnx", "--input", "x.npy", "--out", backend, "--backend", backend,
                         "--contract", "bf16-exact")
            seen.add((self.folder / backend / "output_0.npy").read_bytes())
        self.assertEqual(len(seen), 1)

    def test_integers_multiply_on_every_machine_to_the_same_bits(self):
        self.save([node("QuantizeLinear", ["x", "s"], ["q"]), node("QuantizeLinear", ["w", "s"], ["v"]),
                   node("MatMulInteger", ["q", "v"], ["y"])], [value_info("x", ["batch", 3])],
                  [value_info("y", ["batch", 2], INT32)],
                  [tensor("w", (3, 2), [1, 2, 3, 4, 5, 6]), tensor("s", (), [0.5])])
        for machine in (["cpu"], ["cuda-emulated"], ["systolic", "--machine", "mmu16-int8"]):
            self.succeed("run", "model.onnx", "--input", "x.npy", *DIR, "--contract", "int8", "--backend", *machine)
            # Quantised to numbers without a sign, x is 0 4 0, 8 0 12.
            self.assertEqual(self.output(), ("<i4", (2, 2), [24, 32, 136, 176]))

    def test_int8_has_no_products_of_floats(self):
        self.save([node("MatMul", ["x", "x"], ["y"])], [value_info("x", [2, 2])], [value_info("y", [2, 2])])
        save_npy(self.folder / "x.npy", (2, 2), [1, 2, 3, 4])
        self.expect_error(4, "run", "model.onnx", "--input", "x.npy", *DIR, "--contract", "int8", says=["MatMul", "int8"])

    def test_bfloat16_comes_and_goes_as_float32(self):
        self.save([node("Neg", ["x"], ["y"])], [value_info("x", [3], BFLOAT16)], [value_info("y", [3], BFLOAT16)])
        save_npy(self.folder / "x.npy", (3,), [1.5, 1 + 2**-8, -4])
        self.succeed("run", "model.onnx", "--input", "x.npy", *DIR)
        self.assertEqual(self.output(), ("<f4", (3,), [-1.5, -1, 4]), "halves go to even")

    def test_float64_is_computed_in_float32_and_said_so(self):
        self.save([node("Neg", ["x"], ["y"])], [value_info("x", [2], DOUBLE)], [value_info("y", [2], DOUBLE)])
        save_npy(self.folder / "x.npy", (2,), [1.5, -2], "<f8")
        result = self.succeed("run", "model.onnx", "--input", "x.npy", *DIR)
        self.assertIn("float32", result.stderr)
        self.assertEqual(self.output(), ("<f8", (2,), [-1.5, 2]))
        save_npy(self.folder / "x.npy", (2,), [1e200, 0], "<f8")
        self.expect_error(4, "run", "model.onnx", "--input", "x.npy", *DIR, says=["x.npy", "1e+200"])

    def test_what_is_not_supported_ends_with_4_before_anything_runs(self):
        self.save([node("Relu", ["x"], ["h"]), node("Unique", ["h"], ["y"])], [value_info("x", [2, 3])],
                  [value_info("y", [6])])
        self.expect_error(4, "run", "model.onnx", "--input", "x.npy", *DIR, says=["#1", "Unique", "not supported"])
        self.assertFalse((self.folder / "out").exists())
        result = self.run_program("import", "model.onnx")
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stdout, r"#1 \(Unique\): the operator is not supported\n")

    def test_broken_files_and_wrong_inputs_end_with_2(self):
        run = ["run", "model.onnx", *DIR]
        self.expect_error(2, *run, says=['input "x"', "--input x=FILE.npy"])
        self.expect_error(2, *run, "--input", "x.npy", "--input", "x.npy", says="the model has 1 input\n")
        self.expect_error(2, *run, "--input", "x.npy", "--input", "x=x.npy", says="given already")
        save_npy(self.folder / "z.npy", (2, 4), [0] * 8)
        self.expect_error(2, *run, "--input", "z.npy", says=["[2, 4]", "[2, 3]"])
        for name, shape, descr, remedy in (("few", (3,), "<f4", "the model wants 2; in NumPy, array[None] adds"),
                                           ("many", (1, 2, 3), "<f4", "the model wants 2; in NumPy, array[0] removes"),
                                           ("bytes", (2, 3), "|u1", 'is u8, the model wants f32; in NumPy, '
                                                                    'array.astype("float32") converts it')):
            save_npy(self.folder / f"{name}.npy", shape, [1] * math.prod(shape), descr)
            self.expect_error(2, *run, "--input", f"{name}.npy", says=remedy)
        (self.folder / "x.png").write_bytes(png_bytes(2, 2))
        self.expect_error(2, *run, "--input", "x.png", says='"x.png": not a .npy file, such as numpy.save writes')
        self.expect_error(2, *run, "--input", "x.npy", "--bind", "rows=2", says='"rows"')
        self.expect_error(2, *run, "--input", "x.npy", "--bind", "batch=5", says="[5, 3]")
        self.expect_error(2, *run, "--input", "x.npy", "--bind", "batch=0", says="batch=8")
        self.expect_error(2, "import", "model.onnx", says=["open", "--bind batch=NUMBER"])
        for content in (b"", b"no model", b"\xff" * 40):
            (self.folder / "model.onnx").write_bytes(content)
            self.expect_error(2, *run, "--input", "x.npy", says="model.onnx")

    def test_options_of_runs_do_not_apply_to_models_nor_the_reverse(self):
        self.expect_error(2, "run", "model.onnx", "--input", "x.npy", *DIR, "--previous", says=["--previous", "ONNX"])
        self.expect_error(2, "run", "run", "--input", "x.npy", *DIR, "--bind", "batch=2", says=["--bind", "trained run"])
        self.expect_error(2, "run", "model.onnx", "--input", "x.npy", says="--out is required")
        self.expect_error(2, "run", "--input", "x.npy", *DIR, says="MODEL is missing")

    def test_memory_is_bounded(self):
        self.save([node("Expand", ["x", "to"], ["y"])], [value_info("x", [2, 3]), value_info("to", [3], INT64)],
                  [value_info("y", [1000, 2, 3])])
        save_npy(self.folder / "to.npy", (3,), [1000000, 2, 3], "<i8")
        self.expect_error(2, "run", "model.onnx", "--input", "x.npy", "--input", "to.npy", *DIR, "--max-memory", "8",
                          says="--max-memory")


if __name__ == "__main__":
    main()
