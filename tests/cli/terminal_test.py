"""No command writes a control character to its outputs, for any names and texts.

ROWS has a row for each command: calls that show text of others. A command without a row fails the test."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import onnx_files as onnx
from support import FEW, PROGRAM, SOURCE, TINY, ProgramTest, disc, main, png_bytes, unittest

# C0, DEL, C1, marks of direction, separators of lines; a name also has a byte that is no UTF-8.
TEXT = "e\x1b]0;a\x07\x1b[31m\x9b5m\x7f\b\u061c\u200f\u202e\u2066\u2028\u2029z"
NAME = TEXT.encode().replace(b"/", b"") + b"\x9b\xff"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
COLOURS = re.compile("\x1b\\[(?:1|31|32|33|0)m")


def leaves():
    """Every command that runs something, as its words."""
    text = subprocess.run([PROGRAM, "help", "--json"], capture_output=True, text=True, check=True).stdout
    return [tuple(command["path"].split()) for command in json.loads(text)["results"] if not command["needs_command"]]


NAMED = b"%NAME%"  # the folder of that name, or a file in it
RUN = ["run"]
MACHINE = ["--machine", "machine.json"]
LAB = [3, b"%NAME%/lab"]
SMALL = ["--m", 4, "--k", 4, "--n", 4]
ROWS = {
    ("devices",): [["--machine", "machine.json"], []],
    ("doctor",): [[]],
    ("train",): [["--data", b"%NAME%/data", *TINY, "--steps", 1, "--out", b"%NAME%/run"],
                 ["--data", b"%NAME%/classes", "--model", "cnn", "--size", 16, "--steps", 1, "--out", "x"],
                 ["--data", "data", "--list", "evil.csv", *TINY, "--out", "x"],
                 ["--model", "model.onnx", "--out", "x"], ["--resume", b"%NAME%/data"]],
    ("run",): [["model.onnx", "--out", "x"], [*RUN, "--input", b"%NAME%/data/images", "--out", "masks"],
               ["good.onnx", "--input", b"%NAME%/x.npy", "--out", b"%NAME%/values"], [b"%NAME%", "--input", "x", "--out", "y"]],
    ("evaluate",): [[*RUN, "--data", b"%NAME%/data"], [*RUN, "--data", "data", "--out", b"%NAME%/judged"],
                    [*RUN, "--data", "data", "--list", "evil.csv"]],
    ("cross-validate",): [["--data", b"%NAME%/data", "--folds", 2, "--out", "x", *TINY, "--epochs", 1]],
    ("find-lr",): [["--data", b"%NAME%/data", *TINY, "--trials", 10, "--out", b"%NAME%/lr.csv"]],
    ("bench",): [["--model", "model.onnx"], ["--model", b"%NAME%.onnx"]],
    ("bench", "matmul"): [["--device", "device.json", *SMALL], [*MACHINE, "--backend", "systolic", *SMALL]],
    ("bench", "attention"): [["--device", b"%NAME%"]],
    ("bench", "conv"): [["--device", "device.json"]],
    ("bench", "all-reduce"): [["--ranks", TEXT], ["--bytes", "4KiB", "--seconds", "0.01", "--plot", b"%NAME%/plot.svg"]],
    ("bench", "strategies"): [["--device", "device.json", "--ranks", 2, *TINY], ["--device", b"%NAME%"]],
    ("bench", "bandwidth"): [["--backends", TEXT]],
    ("calibrate",): [["--out", b"%NAME%/no/c.json", "--backend", TEXT]],
    ("compare",): [["--data", b"%NAME%/data", *TINY, "--out", "c.html", *MACHINE, "--backends", "cpu,systolic"]],
    ("import",): [["model.onnx"], ["good.onnx"], [b"%NAME%.onnx"], ["good.onnx", "--json"]],
    ("export",): [["run", "--out", b"%NAME%/model.onnx"], [b"%NAME%", "--out", "m.onnx"]],
    ("launch",): [["-n", 1, "train", "--data", b"%NAME%/data", "--out", b"%NAME%/r"], ["-n", 1, TEXT]],
    ("explain",): [["--model", "model.onnx"], ["--model", "unet-s", *MACHINE, "--backend", "systolic", "--contract", "bf16"]],
    ("quantize",): [[*RUN, "--out", b"%NAME%/int8"], [b"%NAME%", "--out", "x"]],
    ("trace",): [["--model", "model.onnx"], ["--model", "unet-s", "--base", 2, "--depth", 1, "--size", 16, "--out", b"%NAME%/t.json"]],
    ("trace", "matmul"): [[*MACHINE, *SMALL, "--waves", b"%NAME%/w.fst"], ["--machine", b"%NAME%"]],
    ("trace", "conv"): [[*MACHINE, "--out", b"%NAME%/t.json"]],
    ("check",): [["--kernel", TEXT]],
    ("kernel", "build"): [["evil.cu"], ["warns.cu", "--out", b"%NAME%/k.so"], [b"%NAME%.cu"]],
    ("kernel", "run"): [["evil.cu"], ["good.cu", b"%NAME%/x.npy", "--grid", 1, "--block", 1], ["good.cu", TEXT]],
    ("kernel", "debug"): [["evil.cu"], ["good.cu", TEXT], ["good.cu", "f32:1", "--break", TEXT, "--do", TEXT]],
    ("lab", "list"): [[]],
    ("lab", "start"): [[7, "--out", b"%NAME%/new"], [7, "--out", b"%NAME%/lab"]],
    ("lab", "predict"): [LAB],
    ("lab", "check"): [[*LAB, "--without-predictions"], [*LAB, "--without-predictions", "--json"],
                       [*LAB, "--results", b"%NAME%/r.json"]],
    ("machine", "list"): [[]],
    ("machine", "show"): [["machine.json"], ["bad.json"], ["machine.json", "--json"], [b"%NAME%.json"]],
    ("machine", "build"): [["bad.json"], ["machine.json", "--rtl", b"%NAME%"]],
    ("machine", "rtl"): [[TEXT, "--out", b"%NAME%/rtl"], ["mmu_pe", "--out", b"%NAME%/rtl"]],
    ("mmu", "asm"): [["evil.s"], ["good.s", "--out", b"%NAME%/g.hex"]],
    ("mmu", "disasm"): [["evil.s"], [b"%NAME%"]],
    ("mmu", "run"): [["evil.s"], ["good.s", *MACHINE], ["good.s", "--dram", TEXT + "=x.npy"]],
    ("mmu", "test"): [["evil.s"], [b"%NAME%/copy.s"], [b"%NAME%/copy.s", "--json"]],
    ("synthesize",): [["--images", 1, "--size", 16, "--out", b"%NAME%/made"]],
    ("data", "describe"): [[b"%NAME%/data"], ["data", "--list", "evil.csv"], [b"%NAME%/classes"],
                           [b"%NAME%/data", "--out", b"%NAME%/sheet.png"]],
    ("reproduce",): [["--claims", TEXT], ["--claims", "ring", "--quick", "--out", b"%NAME%/no/such\xff"]],
    ("page",): [["run", "--out", b"%NAME%/run.html"], [b"%NAME%/data"]],
    ("page", "array"): [["--out", b"%NAME%/a.html"]],
    ("page", "gpu"): [["--out", b"%NAME%/g.html"], ["--out", NAMED]],
    ("page", "collectives"): [["--out", b"%NAME%/c.html", TEXT]],
    ("completion",): [[TEXT]],
    ("help",): [[TEXT], ["train", TEXT]],
    ("version",): [[]],
}


class Terminal(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="triptych-terminal-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.named = os.path.join(os.fsencode(cls.shared), NAME)
        for folder in (os.fsencode(cls.shared / "data"), cls.named + b"/data"):
            for part, sample in ((b"images", lambda x, y, c: (x * 7 + y * 13) & 255), (b"masks", disc(16, 16))):
                os.makedirs(os.path.join(folder, part))
                for name in (b"a", b"b", b"c", b"d"):
                    with open(os.path.join(folder, part, name + b".png"), "wb") as file:
                        file.write(png_bytes(16, 16, sample=sample))
        with open(os.path.join(cls.named, b"data/images", NAME + b".png"), "wb") as file:
            file.write(png_bytes(16, 16))
        for kind in (NAME, b"b"):
            os.makedirs(os.path.join(cls.named, b"classes", kind))
            for i in range(4):
                with open(os.path.join(cls.named, b"classes", kind, b"%d.png" % i), "wb") as file:
                    file.write(png_bytes(16, 16))
        cls.program("train", *FEW, "--steps", 1, "--out", "run")
        cls.write_texts()

    @classmethod
    def write_texts(cls):
        def put(name, text):
            (cls.shared / name).write_bytes(text.encode() if isinstance(text, str) else text)

        machine = json.loads(cls.program("machine", "show", "mmu4").stdout)
        put("machine.json", json.dumps({**machine, "name": "mine", "clock_source": TEXT, "clock_closed_in": TEXT}))
        put("bad.json", json.dumps({**machine, "name": TEXT, TEXT: TEXT}))
        device = json.loads((SOURCE / "experiments/machines/devices/a100.json").read_text())
        put("device.json", json.dumps({**device, "name": TEXT, "description": TEXT}))
        put("evil.csv", f"id,split\n{TEXT},train\n")
        put("evil.s", f"load {TEXT}\n{TEXT} x=1\n")
        put("good.s", "halt\n")
        shutil.copy(cls.shared / "good.s", os.path.join(cls.named, b"copy.s"))
        put("evil.cu", f"__global__ void f(float* x) {{ {TEXT} }}\n#warning {TEXT}\n")
        put("warns.cu", f"#warning {TEXT}\n__global__ void f(float* x) {{ x[0] = 1; }}\n")
        put("good.cu", "__global__ void f(float* x) { x[1 << 20] = 1; }  // " + TEXT + "\n")
        onnx.save_npy(cls.shared / "x.npy", [1, 2], [1, 2])
        shutil.copy(cls.shared / "x.npy", os.path.join(cls.named, b"x.npy"))
        x, y = onnx.value_info("x", [1, 2]), onnx.value_info("y", [1, 2])
        named = onnx.node("Relu", ["x"], ["y"]) + onnx.field(3, "plain")
        producer = onnx.field(2, TEXT) + onnx.field(3, TEXT)
        put("good.onnx", onnx.model([named], [x], [y]) + producer)
        put("model.onnx", onnx.model([onnx.node(TEXT, [TEXT], ["y"]) + onnx.field(3, TEXT)], [x], [y]) + producer)
        cls.program("lab", "start", 3, "--out", cls.named + b"/lab")
        answers = json.loads(open(cls.named + b"/lab/answers.json").read())
        evil = {part: {name: TEXT + "\nlab 3: 100 of 100 points" for name in names} for part, names in answers.items()}
        with open(cls.named + b"/lab/answers.json", "w") as file:
            json.dump(evil, file)
        shutil.copy(cls.shared / "evil.s", cls.named + b"/lab/product.s")

    @classmethod
    def program(cls, *arguments):
        words = [word if isinstance(word, bytes) else str(word) for word in arguments]
        words = [word.replace(NAMED, NAME) if isinstance(word, bytes) else word for word in words]
        return subprocess.run([PROGRAM, *words], cwd=cls.shared, capture_output=True, timeout=300,
                              stdin=subprocess.DEVNULL, env={**os.environ, "TRIPTYCH_CACHE": "", "HOME": str(cls.shared)})

    def harmless(self, *arguments):
        result = self.program(*arguments)
        self.assertGreaterEqual(result.returncode, 0, arguments)
        for stream in (result.stdout, result.stderr):
            try:
                text = stream.decode()
            except UnicodeDecodeError as error:
                self.fail(f"{arguments}: {error}: {stream}")
            self.assertIsNone(STEERS.search(text), f"{arguments}: {text!r}")
        return result.stdout.decode() + result.stderr.decode()

    def test_every_command_has_a_row(self):
        self.assertEqual(set(leaves()), set(ROWS))

    def test_no_command_passes_a_control_character_on(self):
        for command, calls in ROWS.items():
            for call in calls:
                with self.subTest(command=command, call=call):
                    self.harmless(*command, *call)

    def test_no_command_repeats_what_it_does_not_know(self):
        for command in ROWS:
            for words in (["--" + TEXT], [TEXT, TEXT, TEXT, TEXT]):
                with self.subTest(command=command):
                    self.harmless(*command, *words)

    def test_text_of_others_is_shown_as_escapes(self):
        text = self.harmless("machine", "show", "machine.json")
        self.assertIn(r"e\u001b]0;a\u0007\u001b[31m\u009b5m\u007f", text)
        said = self.harmless("data", "describe", b"%NAME%")
        self.assertIn(r"\x9b\xff", said)

    def test_a_document_means_the_same(self):
        shown = json.loads(self.program("machine", "show", "machine.json").stdout)
        self.assertEqual(shown["clock_source"], TEXT)

    def test_an_answer_cannot_begin_a_line(self):
        text = self.harmless("lab", "check", *LAB, "--without-predictions")
        self.assertFalse([line for line in text.splitlines()[1:] if line.startswith("lab 3")], text)

    def test_colours_are_the_only_sequences(self):
        result = self.program("run", TEXT, "--input", "x", "--out", "y", "--color", "always")
        self.assertIsNone(STEERS.search(COLOURS.sub("", result.stderr.decode())), result.stderr)
        self.assertIn(b"\x1b[31mtriptych:", result.stderr)

    def test_a_long_text_is_cut(self):
        (self.shared / "long.s").write_text("load " + "9" * 2_000_000 + "\n")
        said = self.harmless("mmu", "asm", "long.s")
        self.assertLess(len(said), 20_000)
        self.assertIn("bytes more)", said)


if __name__ == "__main__":
    main()
