"""The JSON documents of every command against docs/reference/json.schema.json."""
# SPDX-License-Identifier: Apache-2.0
import copy
import json
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is missing (apt-get install python3-jsonschema)")
    sys.exit(77)

from mmu_test import PRODUCT, npy
from onnx_files import save_relu
from support import FEW, SOURCE, TINY, ProgramTest, main, png_bytes

SCHEMA = json.loads((SOURCE / "docs/reference/json.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


class Documents(ProgramTest):
    def valid(self, command, *arguments):
        document = self.document(*command.split(), *arguments)
        errors = [f"{e.json_path}: {e.message}" for e in VALIDATOR.iter_errors(document)]
        self.assertEqual(errors, [])
        self.assertEqual(document["command"], command)
        return document

    def invalid(self, document, *path, value=None):
        """The document without the member at `path`, or with `value` there, must not validate."""
        changed = copy.deepcopy(document)
        part = changed
        for key in path[:-1]:
            part = part[key]
        if value is None:
            del part[path[-1]]
        else:
            part[path[-1]] = value
        self.assertFalse(VALIDATOR.is_valid(changed), f"{path} {value}")

    def test_the_schema_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_devices_and_doctor(self):
        devices = self.valid("devices")
        self.assertIn("cpu", [entry["backend"] for entry in devices["results"]])
        doctor = self.valid("doctor")
        self.assertTrue(all(f["status"] == "ok" for f in doctor["results"] if f["required"]))
        self.invalid(doctor, "results", 0, "status")
        self.invalid(doctor, "results", 0, "status", value="good")

    def test_help_version_completion_and_failures(self):
        shown = self.valid("help", "bench", "conv")
        self.assertEqual([command["path"] for command in shown["results"]], ["bench conv"])
        self.invalid(shown, "results", 0, "options", 0, "value")
        self.valid("version")
        self.assertEqual(self.valid("completion", "fish")["results"][0]["shell"], "fish")
        for words in (["frobnicate"], ["train", "--epochs"], ["run", "--weights", "none", "--input", "x", "--out", "y"]):
            failed = json.loads(self.run_program(*words, "--json").stdout)
            self.assertTrue(VALIDATOR.is_valid(failed), failed)
            self.invalid(failed, "error", "message")
            self.invalid(failed, "results", value=[])

    def test_kernel(self):
        (self.folder / "twice.cu").write_text(
            "__global__ void twice(const float* x, float* y) {\n"
            "  y[threadIdx.x] = 2 * x[threadIdx.x];\n}\n")
        built = self.valid("kernel build", "twice.cu", "--out", "twice.so")
        self.assertEqual(built["results"][0]["parameters"], ["const float*", "float*"])
        run = self.valid("kernel run", "twice.so", "f32:32=1", "f32:32", "--block", "32")
        self.invalid(run, "results", 0, "counters", "lines", 0, "sectors")
        self.invalid(run, "results", 0, "counters", "passes", 0, "warps")
        debug = self.valid("kernel debug", "twice.cu", "f32:32=1", "f32:32", "--block", "32", "--do", "print x[0]")
        self.invalid(debug, "results", 0, "stops", 0, "lanes", 0, "state", value="asleep")
        failed = self.run_program("kernel", "run", "twice.so", "null", "f32:32", "--json")
        self.assertEqual(failed.returncode, 1)
        document = json.loads(failed.stdout)
        self.assertTrue(VALIDATOR.is_valid(document))
        self.invalid(document, "results", 0, "findings", 0, "kind", value="bad")

    def test_lab(self):
        self.valid("lab list")
        self.valid("lab start", "1", "--out", "mine")
        answers = self.folder / "mine/answers.json"
        answers.write_text(answers.read_text().replace("null", "1"))
        self.valid("lab predict", "1", "mine")
        (self.folder / "mine/array.sv").write_text("no module\n")
        checked = self.run_program("lab", "check", "1", "mine", "--json")
        self.assertEqual(checked.returncode, 1, checked.stderr)
        document = json.loads(checked.stdout)
        self.assertTrue(VALIDATOR.is_valid(document))
        self.invalid(document, "results", 0, "items", 0, "kind", value="guess")
        self.invalid(document, "results", 0, "items", 0, "said", value="")
        self.invalid(document, "results", 0, "points", value=99)

    def test_train_run_and_synthesize(self):
        train = self.valid("train", *FEW, "--epochs", "2", "--out", "a")
        self.assertEqual(json.loads((self.folder / "a/report.json").read_text()), train)
        result = train["results"][0]
        self.assertEqual(len(result["losses"]), result["steps"])
        self.valid("train", "--resume", "a", "--epochs", "3")
        self.assertEqual(self.valid("page", "a", "--out", "page.html")["results"], [{"file": "page.html"}])
        self.valid("train", *FEW, "--steps", "1", "--validation", "0")
        data = self.valid("synthesize", "--out", "data", "--images", "2", "--size", "16")
        said = self.valid("data describe", "data", "--out", "sheet.png")
        self.assertEqual(said["results"][0]["masks"], data["results"][0]["images"])
        self.invalid(said, "results", 0, "labels", 0, "value", value=-1)
        run = self.valid("run", "a", "--input", "data/images", "--out", "masks")
        self.assertEqual(len(run["results"]), data["results"][0]["images"])
        evaluated = self.valid("evaluate", "a", "--data", "data", "--regions", "0")
        self.invalid(evaluated, "results", 0, "classes", 0, "dice", value=2)
        self.invalid(evaluated, "results", 0, "images", 0, "brier")
        folds = self.valid("cross-validate", *FEW, "--folds", "2", "--steps", "1", "--out", "c")
        self.assertEqual(json.loads((self.folder / "c/cross-validation.json").read_text()), folds)
        self.invalid(folds, "results", 0, "folds", 1, "dice", value=2)
        self.invalid(folds, "results", 0, "summary", "iou", "deviation")
        found = self.valid("find-lr", *FEW, "--trials", "12")
        self.invalid(found, "results", 0, "trials", 3, "rate", value=0)
        exported = self.valid("export", "a", "--out", "a.onnx")
        self.invalid(exported, "results", 0, "pixels", value="int16")
        quantized = self.valid("quantize", "a", "--out", "b")
        self.invalid(quantized, "results", 0, "qualities", 0, "dice", value=2)

    def test_rows(self):
        from onnx_rows_test import CLASSES, classifier
        (self.folder / "net.onnx").write_bytes(classifier())
        for name in CLASSES:
            (self.folder / "data" / name).mkdir(parents=True)
            for i in range(2):
                (self.folder / "data" / name / f"{i}.png").write_bytes(png_bytes(8, 8))
        data = ["--data", "data", "--size", "8", "--batch", "2", "--validation", "0.5", "--steps", "2"]
        train = self.valid("train", "--model", "net.onnx", *data, "--out", "a")
        self.assertIsNone(train["results"][0]["epochs"][0]["dice"])
        self.assertLessEqual(train["results"][0]["epochs"][0]["accuracy"], 1)
        judged = self.valid("evaluate", "a", "--data", "data")["results"][0]
        self.assertEqual(judged["class_names"], list(CLASSES))
        self.assertEqual(sum(one["count"] for one in judged["confusion_counts"]), 6)
        run = self.valid("run", "a", "--input", "data/dog", "--out", "classes")
        self.assertEqual(len(run["results"]), 2)

    def test_onnx_files(self):
        save_relu(self.folder)
        run = self.valid("run", "model.onnx", "--input", "x.npy", "--out", "out")
        self.assertEqual(run["results"][0]["outputs"][0]["shape"], [2, 3])
        self.invalid(run, "results", 0, "outputs", 0, "shape", value=[-1])
        survey = self.valid("import", "model.onnx", "--bind", "batch=4")
        self.assertEqual(survey["results"][0]["nodes"][0]["becomes"], ["Relu"])
        self.invalid(survey, "results", 0, "nodes", 0, "obstacle")

    def test_several_machines_give_one_result_each(self):
        train = self.valid("train", *FEW, "--steps", "1", "--backends", "all", "--out", "a")
        machines = [result["backend"] for result in train["results"]]
        self.assertEqual(len(machines), len(set(machines)))

    def test_bench(self):
        self.valid("bench", *TINY, "--repeats", "1", "--mode", "train", "--layers", "--batch", "1,2",
                   "--threads", "1,2")
        for row in self.valid("bench", "matmul", "--sizes", "8..16", "--repeats", "1")["results"]:
            self.assertRegex(row["name"], r"^matmul/(8x8x8|16x16x16)$")
        ladder = self.valid("bench", "matmul", "--sizes", "8", "--kernel", "naive,best", "--repeats", "1")
        self.invalid(ladder, "results", 0, "peak", "kind", value="modelled")
        self.invalid(ladder, "results", 0, "traffic", 0, "kind", value="measured")
        self.valid("bench", "conv", "--shape", "2,3,8,8", "--repeats", "1")
        product = ["bench", "matmul", "--sizes", "40", "--repeats", "1"]
        names = [self.valid(*product, *more)["results"][0]["name"] for more in ([], ["--constant-b"])]
        self.assertEqual(names, ["matmul/40x40x40", "matmul/40x40x40/constant-b"])
        sums = self.document("bench", "all-reduce", "--bytes", "4..64", "--repeats", "1")
        VALIDATOR.validate(sums)
        self.assertEqual([row["bytes"] for row in sums["results"]], 2 * [4, 16, 64])
        self.invalid(sums, "results", 0, "right")

    def test_machines_as_figures(self):
        array = self.valid("calibrate", "--backend", "systolic")
        self.invalid(array, "results", 0, "peaks", "bf16", "source")
        self.invalid(array, "results", 0, "levels", 0, "copy", "kind", value="felt")
        row = self.valid("bench", *TINY, "--repeats", "1", "--device", "rtx2070super")
        self.invalid(row, "results", 0, "modelled", "time", "kind", value="measured")
        tiny = [*TINY, "--batch", "4", "--strategies", "dp"]
        measured = self.valid("bench strategies", *tiny, "--steps", "1", "--epochs", "1")
        self.invalid(measured, "results", 1, "median")
        modelled = self.valid("bench strategies", *tiny, "--device", "rtx2070super", "--link", "pcie3x8")
        self.invalid(modelled, "results", 1, "modelled", "kind", value="measured")
        self.invalid(modelled, "results", 1, "survey", "kind", value="measured")
        self.invalid(modelled, "results", 1, "elements_summed")
        self.invalid(modelled, "results", 1, "epoch_model", "fixed")

    def test_machines_beside_each_other(self):
        swept = self.document("bench", "conv", "--shape", "2,3,8,8", "--repeats", "1", "--backends",
                              "cpu,systolic,cuda-emulated", "--batch", "1,2")
        VALIDATOR.validate(swept)
        self.assertEqual(swept["command"], "bench conv")
        self.invalid(swept, "results", 0, "points", 0, "time", value=1.5)
        self.invalid(swept, "results", 1, "points", 0, "speedup", "kinds", value=["measured"])
        self.invalid(swept, "results", 1, "break_even", "with_transfers", value="never")
        self.invalid(swept, "results", 2, "reason")
        rates = self.document("bench", "bandwidth", "--backends", "systolic,cuda-emulated",
                              "--device", "h200")
        VALIDATOR.validate(rates)
        self.invalid(rates, "results", 0, "levels", 0, "copy", value=1e9)
        self.invalid(rates, "results", 0, "peaks", "bf16", "source")
        self.invalid(rates, "results", 2, "links", "host", "beta")
        self.invalid(rates, "results", 1, "reason")
        self.invalid(rates, "results", 3, "sram")

    def test_reproduce(self):
        found = self.document("reproduce", "--quick", "--claims", "matrix-units")
        VALIDATOR.validate(found)
        self.invalid(found, "results", "claims", 0, "verdict", value="perhaps")
        self.invalid(found, "results", "claims", 0, "rule")
        self.invalid(found, "results", value=[])
        train = self.valid("train", *FEW, "--steps", "1")
        self.invalid(train, "results", value={})

    def test_explain(self):
        result = self.valid("explain", *TINY, "--passes")["results"][0]
        self.assertEqual(result["flops"], sum(node["flops"] for node in result["nodes"]))
        self.valid("explain", *TINY, "--mode", "infer")
        self.valid("explain", *TINY, "--memory-limit", "1")

    def test_trace(self):
        self.valid("trace", *TINY)
        self.valid("trace", *TINY, "--mode", "train", "--batch", "2", "--ranks", "2")
        traced = self.valid("trace", *TINY, "--backend", "systolic", "--contract", "bf16",
                            "--machine", "mmu4")
        self.invalid(traced, "results", 0, "array", "nodes", 0, "stalls", "drain", value=[[1]])
        self.invalid(traced, "results", 0, "array", "nodes", 0, "busy", "load")

    def test_counters_and_faults(self):
        counted = self.valid("bench", "matmul", "--backend", "cuda-emulated", "--sizes", "8", "--source")
        self.assertNotIn("median", counted["results"][0])
        for field in ("kernel", "barriers", "shared_bytes", "global", "occupancy"):
            self.invalid(counted, "results", 0, "counters", 0, field)
        self.invalid(counted, "results", 0, "counters", 0, "lines", 0, "line")
        self.invalid(counted, "results", 0, "counters", 0, "occupancy", 0, "limits", value=["luck"])
        self.invalid(counted, "results", 0, "counters", 0, "global", "load", "sectors", value=0.5)
        self.invalid(counted, "results", 0, "counters")
        self.valid("check", "--op", "Softmax")
        text = self.run_program("check", "--kernel", "lesson-missing-barrier", "--json").stdout
        found = json.loads(text)
        VALIDATOR.validate(found)
        self.invalid(found, "results", 0, "findings", 0, "line")
        self.invalid(found, "results", 0, "findings", 0, "kind", value="bad luck")

    def test_machine(self):
        listed = self.valid("machine", "list")
        self.invalid(listed, "results", 0, "peak", value=5.6e9)
        self.invalid(listed, "results", 0, "rtl", value="perhaps")
        self.invalid(listed, "results", 0, "machine", "dram", "latency")
        self.assertEqual(len(self.valid("machine", "show", "tpu-v1")["results"]), 1)
        if listed["results"][0]["rtl"] == "built-in":
            built = self.valid("machine", "build", listed["results"][0]["name"])
            self.invalid(built, "results", 0, "time", value=1.5)

    def test_programs_of_the_array(self):
        (self.folder / "product.s").write_text(PRODUCT)
        for name in ("x", "w"):
            (self.folder / f"{name}.npy").write_bytes(npy((4, 4), [1.0] * 16))
        assembled = self.valid("mmu asm", "product.s", "--out", "product.hex")
        self.invalid(assembled, "results", 0, "instructions", 0, "hex", value="12")
        self.valid("mmu disasm", "product.hex")
        (self.folder / "test.s").write_text(
            PRODUCT.replace("\n# x into", "\n" + "".join(
                f"{begin} {f'{value} ' * 16}\n" for begin, value in
                ((".values x", 1), (".values w", 1), (".expect y", 4))) + "# x into", 1))
        tested = self.valid("mmu test", "test.s")
        self.assertTrue(tested["results"][0]["passed"])
        self.invalid(tested, "results", 0, "passed", value="yes")
        run = self.valid("mmu run", "product.s", "--dram", "x=x.npy", "--dram", "w=w.npy", "--per-pe", "cells.json")
        for field in ("cycles", "counters", "busy", "stalls", "outputs", "time"):
            self.invalid(run, "results", 0, field)
        self.invalid(run, "results", 0, "instructions", 0, "unit")
        cells = json.loads((self.folder / "cells.json").read_text())
        validator = jsonschema.Draft202012Validator({**SCHEMA["$defs"]["per_pe"], "$defs": SCHEMA["$defs"]})
        validator.validate(cells)
        del cells["steps"][0]["sum_in"]
        self.assertFalse(validator.is_valid(cells))
        self.valid("machine rtl", "mmu_pe", "--out", "my_rtl")

    def test_a_missing_field_does_not_validate(self):
        train = self.valid("train", *FEW, "--steps", "1", "--out", "a")
        for field in ("schema", "command", "environment", "results"):
            self.invalid(train, field)
        for field in ("commit", "cpu", "threads", "versions", "compiler"):
            self.invalid(train, "environment", field)
        for field in ("backend", "contract", "losses", "epochs", "weights_sha256", "time"):
            self.invalid(train, "results", 0, field)
        self.invalid(train, "results", 0, "epochs", 0, "dice")
        self.invalid(train, "schema", value=2)
        self.invalid(train, "command", value="dance")
        self.invalid(train, "results", 0, "weights_sha256", value="abc")
        bench = self.valid("bench", "matmul", "--sizes", "8", "--repeats", "1")
        for field in ("name", "threads", "batch", "median", "min", "max", "gflops",
                      "peak_memory_mib"):
            self.invalid(bench, "results", 0, field)

    def test_a_bare_number_is_no_time(self):
        train = self.valid("train", *FEW, "--steps", "1", "--out", "a")
        self.invalid(train, "results", 0, "time", value=1.5)
        self.invalid(train, "results", 0, "time", value={"value": 1.5, "unit": "s"})
        self.invalid(train, "results", 0, "time", value={"value": 1.5, "unit": "s", "kind": "felt"})
        self.invalid(train, "results", 0, "time",
                     value={"value": 1.5, "unit": "ms", "kind": "measured"})
        self.invalid(train, "results", 0, "epochs", 0, "train_time", value=1.5)
        bench = self.valid("bench", "matmul", "--sizes", "8", "--repeats", "1")
        self.invalid(bench, "results", 0, "median", value=1.5)


if __name__ == "__main__":
    main()
