"""Nothing that the program did not write is overwritten, and nothing is written into data that is read.

Every option that `triptych help --json` marks as an output is tried.
"""
# SPDX-License-Identifier: Apache-2.0

from kernel_test import SCALE
from mmu_test import PRODUCT
from onnx_files import save_relu
from support import *

FOREIGN = "drawn by hand"
WAVES = ["--backend", "systolic", "--contract", "bf16", "--machine", "mmu4", "--node", "head"]
MMU = ["a.s", "--dram", "x=x.npy", "--dram", "w=x.npy"]
KERNEL = ["scale.cu", "f32:8", "f32:8", "0.5", "8", "--grid", "1", "--block", "8"]
VIEW = ["a.fst", "a.gtkw", "a.elements.txt", "a.weights.txt", "a.sums.txt", "a.instructions.txt"]
COMPARE = [*FEW, "--epochs", "1", "--backends", "cpu", "--figures", "h100"]
# Command and option: arguments, what is given to the option, the files that it writes.
OUTPUTS = {
    ("train", "--out"): ([*TINY, "--data", "data", "--steps", "1"], "out",
                         ["losses.csv", "metrics.csv", "updates.csv", "report.json", "report.html", "loss.svg", "quality.svg", "masks/{picture}",
                          "checkpoint/step-000000001.safetensors"]),
    ("train", "--resume"): ([], "run", ["masks/{picture}", "report.json"]),
    ("run", "--out"): (["run", "--input", "data/images"], "out", ["00.png", "01.png"]),
    ("evaluate", "--out"): (["run", "--data", "data"], "out",
                            ["images.csv", "confusion.csv", "evaluation.json", "worst/00.png"]),
    ("cross-validate", "--out"): ([*TINY, "--data", "data", "--folds", "2", "--steps", "1"], "out",
                                  ["cross-validation.json", "fold-1/report.json"]),
    ("find-lr", "--out"): ([*TINY, "--data", "data", "--trials", "10"], "out/a.csv", ["a.csv"]),
    ("data describe", "--out"): (["data"], "out/a.png", ["a.png"]),
    ("page", "--out"): (["run"], "out/a.html", ["a.html"]),
    ("page array", "--out"): ([], "out/a.html", ["a.html"]),
    ("page gpu", "--out"): ([], "out/a.html", ["a.html"]),
    ("page collectives", "--out"): ([], "out/a.html", ["a.html"]),
    ("quantize", "--out"): (["run"], "out",
                            ["losses.csv", "checkpoint/step-000000001.safetensors"]),
    ("export", "--out"): (["run"], "out/a.onnx", ["a.onnx"]),
    ("kernel build", "--out"): (KERNEL[:1], "out/a.so", ["a.so"]),
    ("kernel run", "--out"): (KERNEL, "out/y.npy", ["y.npy"]),
    ("lab check", "--results"): (["1", "lab"], "out/a.json", ["a.json"]),
    ("machine rtl", "--out"): (["mmu_pe"], "out", ["mmu_pe.sv"]),
    ("synthesize", "--out"): (["--images", "2", "--size", "16"], "out",
                              ["images/00001.png", "masks/00000.png"]),
    ("compare", "--out"): (COMPARE, "out/page.html", ["page.html", "page.json"]),
    ("compare", "--runs"): (COMPARE, "out", ["cpu/losses.csv", "cpu/report.json"]),
    ("calibrate", "--out"): (["--quick", "--threads", "1"], "out/a.json", ["a.json"]),
    ("explain", "--dot"): (TINY, "out/a.dot", ["a.dot"]),
    ("trace", "--out"): (TINY, "out/a.json", ["a.json"]),
    ("trace", "--program"): ([*TINY, *WAVES], "out/a.txt", ["a.txt"]),
    ("trace", "--waves"): ([*TINY, *WAVES, "--simulate", "rtl"], "out/a.fst", VIEW),
    ("trace", "--per-pe"): ([*TINY, *WAVES], "out/a.json", ["a.json"]),
    **{(f"trace {of}", option): (arguments, f"out/{files[0]}", files) for of in ("matmul", "conv")
       for option, arguments, files in (("--out", [], ["a.json"]), ("--program", [], ["a.txt"]),
                                        ("--per-pe", [], ["a.json"]), ("--waves", ["--simulate", "rtl"], VIEW))},
    ("mmu asm", "--out"): (MMU[:1], "out/a.hex", ["a.hex"]),
    ("mmu disasm", "--out"): (["a.hex"], "out/a.s", ["a.s"]),
    ("mmu run", "--out"): (MMU, "out/y.npy", ["y.npy"]),
    ("mmu run", "--per-pe"): (MMU, "out/a.json", ["a.json"]),
    ("mmu run", "--waves"): ([*MMU, "--simulate", "rtl"], "out/a.fst", VIEW),
    ("bench all-reduce", "--plot"): ([], "out/a.svg", ["a.svg"]),
    ("reproduce", "--out"): (["--claims", "ring"], "out/a.html", ["a.html", "a.json"]),
}
# Further kinds of files of the same options.
OTHER_KINDS = [
    (("run", "--out"), (["model.onnx", "--input", "x.npy"], "out", ["output_0.npy"])),
    (("export", "--out"), (["run"], "out/a.safetensors", ["a.safetensors"])),
]


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Outputs(ProgramTest):
    def setUp(self):
        super().setUp()
        make_data(self.folder / "data", [(20, 20), (24, 16), (16, 16)])
        save_relu(self.folder)
        (self.folder / "a.s").write_text(PRODUCT)
        self.succeed("lab", "start", "1", "--out", "lab")
        (self.folder / "scale.cu").write_text(SCALE)
        (self.folder / "a.hex").write_text("0" * 63 + "1\n")
        self.succeed("train", *TINY, "--data", "data", "--steps", "1", "--out", "run", "--threads", "1")

    def options_of_the_program(self):
        return {(command["path"], option["name"]) for command in self.document("help")["results"]
                for option in command["options"] if option["output"]}

    def test_each_option_that_writes_is_tried_here(self):
        self.assertEqual(self.options_of_the_program(), set(OUTPUTS))

    def test_foreign_files_stop_the_command_before_its_work(self):
        picture = next((self.folder / "run/masks").glob("*.png")).name
        for (command, option), (arguments, value, files) in [*OUTPUTS.items(), *OTHER_KINDS]:
            for name in files:
                with self.subTest(command=command, option=option, file=name):
                    out = self.folder / value
                    shutil.rmtree(self.folder / "out", ignore_errors=True)
                    folder = out.parent if out.suffix else out
                    path = folder / name.format(picture=picture)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    kept = path.read_bytes() if path.exists() else None
                    path.write_text(FOREIGN)
                    before = content(self.folder)
                    goes_on = option == "--resume"  # whose folder is given
                    says = [str(path.relative_to(self.folder)), "--overwrite", *["--out"] * (not goes_on)]
                    said = self.expect_error(2, *command.split(), *arguments, option, value, says=says).stderr
                    self.assertEqual("--out" in said, not goes_on, said)
                    self.assertEqual(content(self.folder), before)
                    path.unlink() if kept is None else path.write_bytes(kept)

    def test_no_command_writes_to_what_a_run_needs(self):
        self.succeed("train", *TINY, "--data", "data", "--steps", "2", "--keep", "loss", "--out", "kept")
        tensors = next((self.folder / "kept/checkpoint").glob("*.safetensors")).name
        needed = [f"checkpoint/{tensors}", "model.onnx", "report.json", "losses.csv", "best/losses.csv", "best/model.onnx"]
        before = content(self.folder)
        for (command, option), (arguments, value, _) in [*OUTPUTS.items(), *OTHER_KINDS]:
            if pathlib.Path(value).suffix in ("", ".png"):  # no run needs a picture
                continue
            for name in needed:
                for more in ([], ["--overwrite"]):
                    with self.subTest(command=command, option=option, file=name, more=more):
                        out = f"kept/{name}"
                        if command in ("compare", "reproduce"):  # the page, and its numbers beside it
                            out = out.removesuffix(".json") + (".html" if name.endswith(".json") else "")
                        self.expect_error(2, *command.split(), *arguments, option, out, *more,
                                          says=["the run in", "needs"])
        self.assertEqual(content(self.folder), before)

    def test_no_command_writes_to_what_it_reads(self):
        names = {"scale.cu", "a.s", "a.hex", "x.npy", "model.onnx"}
        (self.folder / "hard.npy").hardlink_to(self.folder / "x.npy")
        tried = [(command, option, arguments, name) for (command, option), (arguments, value, _) in [*OUTPUTS.items(), *OTHER_KINDS]
                 if pathlib.Path(value).suffix
                 for name in {part.split("=")[-1] for part in arguments} & names]
        tried += [("mmu run", "--out", MMU, "hard.npy"), ("explain", "--dot", ["--model", "model.onnx"], "model.onnx"),
                  ("trace", "--out", ["--model", "model.onnx"], "model.onnx")]
        self.assertGreater(len(tried), 10)
        before = content(self.folder)
        for command, option, arguments, name in tried:
            with self.subTest(command=command, option=option, file=name):
                self.expect_error(2, *command.split(), *arguments, option, name, "--overwrite",
                                  says=[name, "reads", "own input"])
        self.assertEqual(content(self.folder), before)

    def test_the_network_that_a_run_begins_with_stays(self):
        self.succeed("train", *TINY, "--data", "data", "--steps", "1", "--out", "first")
        self.succeed("export", "first", "--out", "out/model.onnx", "--pixels", "normalized")
        before = content(self.folder / "out")
        for more in ([], ["--overwrite"]):
            self.expect_error(2, "train", "--model", "out/model.onnx", "--size", "16", "--data", "data", "--steps", "1",
                              "--out", "out", *more, says=["out/model.onnx", "own input"])
        self.assertEqual(content(self.folder / "out"), before)

    def test_a_link_in_the_way_is_foreign(self):
        (self.folder / "out").mkdir()
        (self.folder / "out/a.dot").symlink_to("nowhere")
        self.expect_error(2, "explain", *TINY, "--dot", "out/a.dot", says="out/a.dot")
        self.assertTrue((self.folder / "out/a.dot").is_symlink())

    def test_nothing_is_written_into_data(self):
        (self.folder / "link").symlink_to("data")
        before = content(self.folder)
        data = ["--data", "data"]
        for out in ("data", "data/deep/er", "link", "link/x", "run/../data/masks", self.folder / "data/"):
            self.expect_error(2, "train", *TINY, *data, "--out", out, says=["read", "--out"])
            self.expect_error(2, "quantize", "run", "--out", out, says=["read", "--out"])
            self.expect_error(2, "compare", *COMPARE[:6], *data, "--runs", out, says=["read", "--out"])
            self.expect_error(2, "compare", *COMPARE[:6], *data, "--out", f"{out}/a.html", says=["read", "--out"])
            self.expect_error(2, "evaluate", "run", "--out", out, says=["read", "--out"])
            self.expect_error(2, "run", "run", "--input", "data", "--out", out, says="data")
        self.assertEqual(content(self.folder), before)

    def test_own_files_are_replaced_until_somebody_changes_one(self):
        apply = ["run", "run", "--input", "data/images", "--out", "out"]
        for _ in range(2):
            self.succeed(*apply)
            self.succeed("explain", *TINY, "--dot", "a.dot")
            self.succeed("synthesize", "--images", "2", "--size", "16", "--out", "made")
        lines = (self.folder / "out/.triptych").read_text().splitlines()
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assertEqual(line, f"{digest(self.folder / 'out' / line[66:])}  {line[66:]}")
        (self.folder / "out/01.png").write_text(FOREIGN)
        self.expect_error(2, *apply, says=["out/01.png", "changed"])

    def test_overwrite_names_what_it_replaces(self):
        apply = ["run", "run", "--input", "data/images", "--out", "out", "--overwrite"]
        (self.folder / "out").mkdir()
        (self.folder / "out/01.png").write_text(FOREIGN)
        self.assertEqual(self.succeed(*apply).stderr, 'NOTE: replaces "out/01.png"\n')
        self.assertEqual(self.succeed(*apply).stderr, "")
        (self.folder / "a.dot").write_text(FOREIGN)
        self.assertIn('replaces "a.dot"', self.succeed("explain", *TINY, "--dot", "a.dot", "--overwrite").stderr)
        self.expect_error(2, "train", *TINY, "--steps", "1", "--out", "run", "--overwrite", says="run")
        self.expect_error(2, *apply[:4], "--out", "data/images", "--overwrite", says="own input")

    def test_a_run_that_goes_on_replaces_what_it_is_told_to(self):
        for name in ("report.html", "loss.svg", "metrics.csv"):
            (self.folder / "run" / name).write_text(FOREIGN)
        said = self.succeed("train", "--resume", "run", "--steps", "2", "--overwrite").stderr
        for name in ("report.html", "loss.svg"):
            self.assertIn(f'replaces "run/{name}"', said)
        for name in ("report.html", "loss.svg", "metrics.csv"):
            self.assertNotEqual((self.folder / "run" / name).read_text(), FOREIGN)

    def test_no_file_is_named_as_what_it_is_not(self):
        one = ["run", "run", "--input", "data/images/00.png"]
        for name in ("a.jpg", "a.npy", "new/a.JPEG", "a.bmp"):
            self.expect_error(2, *one, "--out", name, says=[name, "FILE.png or FILE.tif"])
            self.expect_error(2, "data", "describe", "data", "--out", name, says=[name, "FILE.png"])
            self.assertFalse((self.folder / name).exists())
        for name, also in (("a.png", "a.probabilities.npy"), ("b.tif", "b.probabilities.tif")):
            for save, files in (("probabilities", [also]), ("mask,probabilities", [name, also])):
                said = self.succeed(*one, "--out", f"new/{name}", "--save", save).stdout
                self.assertIn("written to " + ", ".join(f"new/{file}" for file in files), said)
                for file in files:
                    self.assertTrue((self.folder / "new" / file).exists(), file)

    def test_what_a_killed_process_left_goes_when_its_run_goes_on(self):
        kept = self.folder / "run/masks/.notes.tmp"
        kept.write_text(FOREIGN)
        for name in ("losses.csv", "metrics.csv", "report.json", "masks/00.png", "masks/deep/er/00.png",
                     "checkpoint/step-000000001.safetensors", "best/losses.csv", "best/checkpoint/checkpoint-000001.json"):
            path = self.folder / "run" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(f".{path.name}.123.0.triptych.tmp").write_text("half")
        self.succeed("train", "--resume", "run", "--steps", "2")
        self.assertEqual(list((self.folder / "run").rglob(".*.tmp")), [kept])

    def test_a_run_without_its_list_owns_no_file(self):
        (self.folder / "run/.triptych").unlink()
        report = (self.folder / "run/report.json").read_text()
        self.expect_error(2, "train", "--resume", "run", "--steps", "2", says=["run/report.json", "--overwrite"])
        self.assertEqual((self.folder / "run/report.json").read_text(), report)
        self.succeed("train", "--resume", "run", "--steps", "2", "--overwrite")
        self.succeed("train", "--resume", "run", "--steps", "3")


if __name__ == "__main__":
    main()
