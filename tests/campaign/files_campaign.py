# SPDX-License-Identifier: Apache-2.0
"""Random changes of every kind of file that the program reads, through the whole program.

A trial changes one valid file and gives it to a command that reads it. The command must end with a documented exit
code and a readable message, below a memory limit, and leave no temporary file. Options: campaign.py.
"""
import hashlib
import json
import os
import shutil
import struct
import sys
import zlib

from campaign import DOCUMENTED, SOURCE, Campaign, main
from mutations import (INTEGERS, changed_bytes, changed_document, changed_jpeg, changed_json, changed_message, changed_png,
                       changed_text, changed_tiff, message_bytes, parse_message)
from pictures import DEFLATE, NONE, PACKBITS, grey_jpeg, tiff_bytes

sys.path.insert(1, str(SOURCE / "tests" / "cli"))
import onnx_files  # noqa: E402

MOST_MIB = 1536
TINY = ["--base", 1, "--depth", 1, "--size", 16, "--batch", 1, "--threads", 1, "--mask-pictures", 0, "--quiet"]
MACHINES = sorted((SOURCE / "systolic" / "machines").glob("*.json"))
DEVICES = sorted((SOURCE / "experiments" / "machines" / "devices").glob("*.json"))
PROGRAMS = sorted((SOURCE / "tests" / "labs" / "solutions" / "4-verifier" / "tests").glob("*.s"))
LABS = {"2": "2-shapes", "7": "7-bandwidth", "8": "8-ring", "9": "9-machines"}
JUDGES = DOCUMENTED | {1}  # the exit codes of a command that checks something


def small_networks(folder):
    """ONNX files of a few operators each, with their input x.npy: 8 floats."""
    f = onnx_files
    ints = lambda name, values: (b"".join(f.field(1, n) for n in [len(values)]) + f.field(2, f.INT64) + f.field(8, name) +
                                 f.field(9, struct.pack(f"<{len(values)}q", *values)))
    x, y = [f.value_info("x", [8])], [f.value_info("y", ["n"])]
    ones = f.tensor("w", [8], [1.0] * 8)
    square = f.tensor("m", [4, 2], [0.5] * 8)
    networks = {
        "add": ([f.node("Add", ["x", "w"], ["a"]), f.node("Relu", ["a"], ["y"])], [ones]),
        "shape": ([f.node("Reshape", ["x", "s"], ["a"]), f.node("Transpose", ["a"], ["b"]),
                   f.node("Slice", ["b", "zero", "two"], ["c"]), f.node("Reshape", ["c", "flat"], ["y"])],
                  [ints("s", [2, 4]), ints("zero", [0]), ints("two", [2]), ints("flat", [-1])]),
        "matmul": ([f.node("Reshape", ["x", "s"], ["a"]), f.node("MatMul", ["a", "m"], ["b"]),
                    f.node("Softmax", ["b"], ["c"]), f.node("Reshape", ["c", "flat"], ["y"])],
                   [ints("s", [2, 4]), square, ints("flat", [-1])]),
        "grow": ([f.node("Expand", ["x", "s"], ["a"]), f.node("Tile", ["a", "r"], ["b"]),
                  f.node("Reshape", ["b", "flat"], ["y"])], [ints("s", [3, 8]), ints("r", [2, 1]), ints("flat", [-1])]),
    }
    for name, (nodes, initializers) in networks.items():
        (folder / f"{name}.onnx").write_bytes(f.model(nodes, x, y, initializers))
    return list(networks)


class Files(Campaign):
    def __init__(self, program, folder, arguments):
        super().__init__(program, folder)
        self.kinds = [arguments.kind] if arguments.kind else KINDS
        self.require("synthesize", "--images", 4, "--size", 32, "--out", "data")
        self.require("train", *TINY, "--data", "data", "--epochs", 2, "--steps-per-epoch", 2, "--out", "run")
        self.require("train", *TINY, "--data", "data", "--strategy", "ps-async", "--ranks", 2, "--steps", 2,
                     "--out", "recorded")
        self.require("export", "run", "--out", "unet.onnx")
        self.require("export", "run", "--out", "weights.safetensors")
        for number, name in LABS.items():
            self.require("lab", "start", number, "--out", f"lab{number}")
            shutil.copytree(SOURCE / "tests" / "labs" / "solutions" / name, self.folder / f"lab{number}",
                            dirs_exist_ok=True)
        for number, program_text in enumerate(PROGRAMS):
            self.require("mmu", "asm", program_text, "--out", f"p{number}.hex")
        onnx_files.save_npy(self.folder / "x.npy", [8], list(range(8)))
        self.networks = small_networks(self.folder)
        self.picture = next((self.folder / "data" / "images").iterdir())
        grey = bytes(range(256)) * 4
        self.tiffs = [tiff_bytes(32, 32, grey), tiff_bytes(32, 32, b"\x81\x07" * 8, PACKBITS), tiff_bytes(
            32, 32, zlib.compress(grey), DEFLATE), tiff_bytes(16, 16, grey[:256], NONE, pages=3)]

    def attempt(self, draw, number):
        kind = self.kinds[number % len(self.kinds)]
        self.begin()
        words, codes = getattr(self, kind)(draw)
        self.judge(self.execute(words), codes, MOST_MIB)

    def begin(self):
        """Removes the files of the trial before."""
        for path in (self.folder / "trial", self.folder / "out"):
            shutil.rmtree(path, ignore_errors=True)
        (self.folder / "trial").mkdir()
        (self.folder / "out").mkdir()

    def write(self, name, data):
        path = self.folder / "trial" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return f"trial/{name}"

    def copy(self, folder):
        shutil.copytree(self.folder / folder, self.folder / "trial" / folder)
        return self.folder / "trial" / folder

    # One method for each kind of file: writes it, and returns the command and its exit codes.

    def onnx(self, draw):
        name = draw.choice([*self.networks, "unet"])
        donors = [parse_message((self.folder / f"{each}.onnx").read_bytes()) for each in self.networks]
        fields = parse_message((self.folder / f"{name}.onnx").read_bytes())
        for _ in range(draw.choice([1, 1, 2, 4])):
            changed_message(draw, fields, donors)
        data = message_bytes(fields)
        model = self.write("m.onnx", changed_bytes(draw, data) if draw.random() < .15 else data)
        limit = ["--max-memory", 256]
        return draw.choice([
            ["run", model, "--input", "x.npy", "--out", "out/o", "--threads", 1, *limit],
            ["import", model, *limit],
            ["train", "--model", model, "--steps", 1, "--batch", 1, "--synthetic-images", 2, "--size", 16,
             "--threads", 1, "--mask-pictures", 0, "--out", "out/r"]]), DOCUMENTED

    def npy(self, draw):
        data = (self.folder / "x.npy").read_bytes()
        if draw.random() < .5:
            size, = struct.unpack("<H", data[8:10])
            header = changed_text(draw, data[10:10 + size].decode(), ["'<f4'", "'<f8'", "'|b1'", "'<i8'", "'|O'", "'>f4'",
                                                                      "True", "False", "None", "[('a','<f4')]"])
            version = draw.choice([1, 1, 1, 2, 3, 0, 4])
            length = struct.pack("<H", len(header) & 65535) if version == 1 else struct.pack("<I", len(header))
            data = b"\x93NUMPY" + bytes([version, draw.choice([0, 0, 1])]) + length + header + data[10 + size:]
        else:
            data = changed_bytes(draw, data)
        return ["run", "add.onnx", "--input", self.write("x.npy", data), "--out", "out/o", "--max-memory", 256,
                "--threads", 1], DOCUMENTED

    def safetensors(self, draw):
        data = (self.folder / "weights.safetensors").read_bytes()
        size, = struct.unpack("<Q", data[:8])
        if draw.random() < .6:
            header = changed_json(draw, json.loads(data[8:8 + size]))
            length = len(header) if draw.random() < .95 else draw.choice(INTEGERS)
            data = struct.pack("<Q", length) + header + data[8 + size:]
        else:
            data = changed_bytes(draw, data)
        return ["train", *TINY, "--init", self.write("w.safetensors", data), "--steps", 1, "--synthetic-images", 2,
                "--out", "out/r"], DOCUMENTED

    def use_of(self, draw, run):
        return draw.choice([
            ["run", run, "--input", self.picture, "--out", "out/o", "--threads", 1],
            ["train", "--resume", run, "--epochs", 3, "--threads", 1, "--quiet"],
            ["page", run, "--out", "out/page.html"],
            ["export", run, "--out", "out/o.onnx"],
            ["evaluate", run, "--threads", 1]]), DOCUMENTED

    def checkpoint(self, draw):
        """Metadata with the checksum that belongs to it, so that more than the checksum is tested."""
        run = self.copy("run")
        files = sorted((run / "checkpoint").glob("checkpoint-*.json"))
        document = json.loads(files[-1].read_text())
        if draw.random() < .8:
            document.pop("metadata_sha256", None)
            document = changed_document(draw, document)
            if isinstance(document, dict):
                text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
                digest = hashlib.sha256(text.encode("utf8", "surrogatepass")).hexdigest()
                document["metadata_sha256"] = digest
            files[-1].write_bytes(json.dumps(document).encode())
        else:
            files[-1].write_bytes(changed_bytes(draw, files[-1].read_bytes()))
        if len(files) > 1 and draw.random() < .8:  # nothing to fall back on
            files[0].unlink()
        return self.use_of(draw, "trial/run")

    def run_files(self, draw):
        run = self.copy("run")
        for name in draw.sample(["report.json", "losses.csv", "metrics.csv", ".triptych"], 2):
            if (run / name).exists():
                (run / name).write_bytes(changed_bytes(draw, (run / name).read_bytes(), 8))
        return self.use_of(draw, "trial/run")

    def report(self, draw):
        run = self.copy("run")
        (run / "report.json").write_bytes(changed_json(draw, json.loads((run / "report.json").read_text())))
        return ["page", "trial/run", "--out", "out/page.html"], DOCUMENTED

    def picture_use(self, draw, path):
        stream = ["--stream-above", 1, "--format", "tiff"] if path.endswith(".tif") and draw.random() < .4 else []
        return draw.choice([
            ["data", "describe", "trial/set"],
            ["run", "run", "--input", path, "--out", "out/o", "--threads", 1, *stream]]), DOCUMENTED

    def png(self, draw):
        data = changed_png(draw, self.picture.read_bytes())
        return self.picture_use(draw, self.write("set/images/a.png", data))

    def tiff(self, draw):
        return self.picture_use(draw, self.write("set/images/a.tif", changed_tiff(draw, draw.choice(self.tiffs))))

    def jpeg(self, draw):
        data = changed_jpeg(draw, grey_jpeg(4, progressive=draw.random() < .5))
        return self.picture_use(draw, self.write("set/images/a.jpg", data))

    def machine(self, draw):
        document = json.loads(draw.choice(MACHINES).read_text())
        machine = "./" + self.write("m.json", changed_json(draw, document))
        systolic = ["--backend", "systolic", "--machine", machine, "--contract", "bf16-exact"]
        return draw.choice([
            ["machine", "show", machine],
            ["explain", *systolic, "--mode", "infer", "--size", 16, "--base", 2, "--depth", 1],
            ["mmu", "run", PROGRAMS[0], "--machine", machine],
            ["bench", "matmul", *systolic, "--sizes", 8]]), JUDGES

    def program_text(self, draw):
        text = draw.choice(PROGRAMS).read_text()
        path = self.write("p.s", changed_text(draw, text, [word for each in PROGRAMS for word in each.read_text().split()]))
        return draw.choice([["mmu", "asm", path], ["mmu", "run", path], ["mmu", "test", path]]), JUDGES

    def machine_code(self, draw):
        lines = (self.folder / f"p{draw.randrange(len(PROGRAMS))}.hex").read_text().split("\n")
        if draw.random() < .7:
            for _ in range(draw.choice([1, 2, 8])):
                i = draw.randrange(len(lines))
                if lines[i]:
                    j = draw.randrange(len(lines[i]))
                    lines[i] = lines[i][:j] + draw.choice("0123456789abcdef") + lines[i][j + 1:]
            data = "\n".join(lines).encode()
        else:
            data = changed_text(draw, "\n".join(lines))
        return ["mmu", "disasm", self.write("p.hex", data)], DOCUMENTED

    def image_list(self, draw):
        rows = [(path.stem, "train" if i else "validation")
                for i, path in enumerate(sorted((self.folder / "data" / "images").iterdir()))]
        text = "id,split\n" + "".join(f"{name},{split}\n" for name, split in rows)
        words = ["id", "image", "mask", "split", "train", "validation", "../../../../etc/passwd", "/etc/passwd", "é",
                 '"0"', '""', "\r", rows[0][0], f"../data/images/{rows[0][0]}"]
        data = changed_text(draw, text, words) if draw.random() < .9 else changed_bytes(draw, text.encode())
        return ["data", "describe", "data", "--list", self.write("l.csv", data)], DOCUMENTED

    def lab(self, draw):
        number = draw.choice(list(LABS))
        folder = self.copy(f"lab{number}")
        path = folder / draw.choice([name for name in sorted(os.listdir(folder))
                                     if name.endswith((".json", ".schedule", ".s")) and not name.startswith(".")])
        data = path.read_bytes()
        if path.suffix == ".json" and draw.random() < .7:
            data = changed_json(draw, json.loads(data))
        elif draw.random() < .7:
            data = changed_text(draw, data.decode(), data.decode().split())
        else:
            data = changed_bytes(draw, data)
        path.write_bytes(data)
        return ["lab", "check", number, folder, "--without-predictions", "--results", "out/results.json"], JUDGES

    def names(self, draw):
        document = {"down0.conv0.weight": "a.0.weight", "down1.*": "enc.1.*"}
        return ["export", "run", "--out", "out/o.safetensors", "--names",
                self.write("n.json", changed_json(draw, document))], DOCUMENTED

    def class_names(self, draw):
        return ["train", *TINY, "--classes", 2, "--class-names",
                self.write("c.txt", changed_bytes(draw, b"background\nnucleus\n")), "--steps", 1,
                "--synthetic-images", 2, "--out", "out/r"], DOCUMENTED

    def device(self, draw):
        path = "./" + self.write("d.json", changed_json(draw, json.loads(draw.choice(DEVICES).read_text())))
        return ["bench", "strategies", "--device", path, "--model", "unet-s", "--ranks", 2, "--strategies", "dp"], DOCUMENTED

    def updates(self, draw):
        run = self.copy("recorded")
        (run / "updates.csv").write_bytes(changed_text(draw, (run / "updates.csv").read_text()))
        return ["train", *TINY, "--data", "data", "--strategy", "ps-async", "--ranks", 2, "--replay", "trial/recorded",
                "--steps", 2, "--comm-timeout", 60, "--out", "out/r"], JUDGES


KINDS = ["onnx", "npy", "safetensors", "checkpoint", "run_files", "report", "png", "tiff", "jpeg", "machine",
         "program_text", "machine_code", "image_list", "lab", "names", "class_names", "device", "updates"]


def add_options(parser):
    parser.add_argument("--kind", choices=KINDS, help="this kind of file alone")


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], Files, add_options))
