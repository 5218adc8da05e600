# SPDX-License-Identifier: Apache-2.0
"""Inputs that are small or strange and ask for much: sizes, depths, counts, special files.

A trial draws one such input with its sizes. The command must end with a documented exit code and a readable message,
below a memory limit, and leave no temporary file. Options: campaign.py.
"""
import json
import os
import shutil
import struct
import sys
import zlib

from campaign import DOCUMENTED, SOURCE, Campaign, main
from pictures import DEFLATE, GREY, PACKBITS, RGB, png_of_zeros, tiff_bytes, zlib_of_zeros

sys.path.insert(1, str(SOURCE / "tests" / "cli"))
import onnx_files  # noqa: E402

MOST_MIB = 2048
LIMIT = 256  # of --max-memory
BEYOND_LIMIT = 32  # MiB that a process may take in addition, as the documents say
TINY = ["--base", 1, "--depth", 1, "--size", 16, "--batch", 1, "--threads", 1, "--mask-pictures", 0, "--quiet"]
MACHINE = SOURCE / "systolic" / "machines" / "mmu16.json"
PROGRAM = SOURCE / "tests" / "labs" / "solutions" / "4-verifier" / "tests" / "product.s"
FORMULAS = SOURCE / "tests" / "labs" / "solutions" / "7-bandwidth"
JUDGES = DOCUMENTED | {1}


class Bombs(Campaign):
    def __init__(self, program, folder, arguments):
        super().__init__(program, folder)
        self.kinds = [arguments.kind] if arguments.kind else KINDS
        self.require("synthesize", "--images", 4, "--size", 32, "--out", "data")
        self.require("train", *TINY, "--data", "data", "--steps", 1, "--out", "run")
        self.require("lab", "start", 7, "--out", "lab7")
        shutil.copytree(FORMULAS, self.folder / "lab7", dirs_exist_ok=True)
        onnx_files.save_npy(self.folder / "x.npy", [8], list(range(8)))

    def attempt(self, draw, number):
        for name in ("trial", "out"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir()
        words, codes = getattr(self, self.kinds[number % len(self.kinds)])(draw)
        self.judge(self.execute(words), codes, LIMIT + BEYOND_LIMIT if "--max-memory" in words else MOST_MIB)

    def path(self, name):
        path = self.folder / "trial" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, name, data):
        self.path(name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return f"trial/{name}"

    def picture_use(self, draw, path):
        return draw.choice([
            ["data", "describe", "trial/set", "--max-memory", LIMIT],
            ["run", "run", "--input", path, "--out", "out/o", "--threads", 1, "--max-memory", LIMIT]]), DOCUMENTED

    # One method for each kind of input: writes it, and returns the command and its exit codes.

    def png(self, draw):
        """A few kilobytes that become megabytes or gigabytes of pixels."""
        height = draw.choice([1, 64, 2048, 16384, 65535])
        width = draw.choice([1, 65536, 1 << 20, 1 << 24]) if height == 1 else draw.choice([1024, 4096, 65535])
        data = png_of_zeros(width, height, draw.choice([1, 8, 16]), draw.choice([GREY, RGB]))
        return self.picture_use(draw, self.write("set/images/a.png", data))

    def tiff(self, draw):
        """Sizes without pixels, many pages, pages in a circle, a decoder that never advances."""
        zeros = zlib.compress(bytes(1000))
        data = draw.choice([
            lambda: tiff_bytes(65535, 65535, zlib_of_zeros(1 << 32), DEFLATE),
            lambda: tiff_bytes(draw.choice([4096, 16384, 1 << 30]), draw.choice([4096, 16384]), zeros, DEFLATE),
            lambda: tiff_bytes(16, 16, bytes(256), pages=draw.choice([100, 1000])),
            lambda: tiff_bytes(16, 16, bytes(256), pages=3, after_last=draw.choice([8, 8 + 126])),
            lambda: tiff_bytes(16, 16, b"\x81\0" * draw.choice([1000, 2000000]), PACKBITS),
            lambda: tiff_bytes(1000, 1000, b"x", samples=draw.choice([5, 255, 65535]))])()
        return self.picture_use(draw, self.write("set/images/a.tif", data))

    def special(self, draw):
        """Something that is no regular file, or claims a tebibyte, in the place of each kind of file."""
        name, words = draw.choice([
            ("set/images/a.png", ["data", "describe", "trial/set"]),
            ("a.tif", ["run", "run", "--input", "trial/a.tif", "--out", "out/o", "--threads", 1]),
            ("m.onnx", ["import", "trial/m.onnx"]),
            ("w.safetensors", ["train", *TINY, "--init", "trial/w.safetensors", "--steps", 1, "--synthetic-images", 2,
                               "--out", "out/r"]),
            ("m.json", ["machine", "show", "./trial/m.json"]),
            ("rtl/mmu_pe.sv", ["machine", "show", "mmu2+trial/rtl"]),
            ("k.cu", ["kernel", "run", "trial/k.cu", "f32:4"]),
            ("p.s", ["mmu", "asm", "trial/p.s"]),
            ("p.hex", ["mmu", "disasm", "trial/p.hex"]),
            ("l.csv", ["data", "describe", "data", "--list", "trial/l.csv"]),
            ("n.json", ["export", "run", "--out", "out/o.safetensors", "--names", "trial/n.json"]),
            ("d.json", ["bench", "strategies", "--device", "./trial/d.json", "--model", "unet-s", "--ranks", 2])])
        path = self.path(name)
        kind = draw.choice(["pipe", "zero", "sparse", "loop", "folder", "empty", "missing"])
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "zero":
            path.symlink_to("/dev/zero")
        elif kind == "loop":
            path.symlink_to(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "sparse":
            start = {".png": b"\x89PNG\r\n\x1a\n", ".tif": b"II*\0\x08\0\0\0", ".safetensors": struct.pack("<Q", 1 << 39)}
            path.write_bytes(start.get(path.suffix, b""))
            os.truncate(path, 1 << draw.choice([33, 40]))
        elif kind == "empty":
            path.write_bytes(b"")
        return words, DOCUMENTED

    def assembly(self, draw):
        text = PROGRAM.read_text()
        path = self.write("p.s", draw.choice([
            lambda: text + "\nhalt" * draw.choice([1000, 200000]),
            lambda: "# " + "x" * draw.choice([1000, 20000000]),
            lambda: ".input x " + "9" * draw.choice([30, 4000, 2000000]) + "\n",
            lambda: text + ".values x " + "1 " * draw.choice([1000, 1000000])])())
        return ["mmu", draw.choice(["asm", "run"]), path], JUDGES

    def machine_code(self, draw):
        return ["mmu", "disasm", self.write("p.hex", ("0" * 64 + "\n") * draw.choice([1000, 200000]))], DOCUMENTED

    def image_list(self, draw):
        path = self.write("l.csv", draw.choice([
            lambda: "id,split\n" + "".join(f"{i:07},train\n" for i in range(draw.choice([1000, 300000]))),
            lambda: 'id,split\n"' + "x" * draw.choice([1000, 20000000]),
            lambda: "id" + ",c" * draw.choice([1000, 200000]) + "\n00000" + ",x" * 200000 + "\n"])())
        return ["data", "describe", "data", "--list", path], DOCUMENTED

    def json(self, draw):
        depth = draw.choice([60, 64, 65, 100, 100000])
        text = draw.choice([
            lambda: '{"a":' * depth + "1" + "}" * depth,
            lambda: "[" * depth + "]" * depth,
            lambda: '{"name":"x","rows":' + "1" * draw.choice([400, 4000, 2000000]) + "}",
            lambda: '{"' + "k" * draw.choice([300, 5000, 2000000]) + '":1}',
            lambda: "{" + ",".join(f'"k{i}":{i}' for i in range(draw.choice([1000, 200000]))) + "}"])()
        path = "./" + self.write("j.json", text)
        return draw.choice([["machine", "show", path],
                            ["export", "run", "--out", "out/o.safetensors", "--names", path],
                            ["bench", "strategies", "--device", path, "--model", "unet-s", "--ranks", 2]]), DOCUMENTED

    def machine(self, draw):
        """A machine with memories or dimensions that are too large."""
        document = json.loads(MACHINE.read_text())
        numbers = sorted(key for key, value in document.items() if isinstance(value, int) and not isinstance(value, bool))
        document[draw.choice(numbers)] = draw.choice([0, 1, 255, 256, 65536, 1 << 30, 1 << 46, (1 << 63) - 1])
        path = "./" + self.write("m.json", json.dumps(document))
        return draw.choice([["mmu", "run", PROGRAM, "--machine", path],
                            ["bench", "matmul", "--backend", "systolic", "--machine", path, "--sizes", 16, "--contract",
                             "bf16-exact"]]), JUDGES

    def formulas(self, draw):
        shutil.copytree(self.folder / "lab7", self.folder / "trial" / "lab7")
        path = self.folder / "trial" / "lab7" / "formulas.json"
        document = json.loads(path.read_text())
        times = draw.choice([10, 1000, 200000])
        document[draw.choice(sorted(document))] = draw.choice([
            "(" * times + "1" + ")" * times, "2**" * min(times, 5000) + "2", "-" * times + "1", "1/0", "9" * times,
            "floor(" * times + "1" + ")" * times, "m" + "*m" * times])
        path.write_text(json.dumps(document))
        return ["lab", "check", 7, "trial/lab7", "--without-predictions"], JUDGES

    def array(self, draw):
        """A header of .npy that promises more data than the file has."""
        shape = draw.choice([[1 << 40], [1 << 62, 4], [0, 1 << 62], [1] * draw.choice([8, 64, 5000]), [8] * 20, [-8]])
        onnx_files.save_npy(self.path("x.npy"), shape, list(range(8)))
        self.add_model("add.onnx", [onnx_files.node("Relu", ["x"], ["y"])], [])
        return ["run", "trial/add.onnx", "--input", "trial/x.npy", "--out", "out/o", "--max-memory", LIMIT,
                "--threads", 1], DOCUMENTED

    def add_model(self, name, nodes, initializers):
        f = onnx_files
        self.write(name, f.model(nodes, [f.value_info("x", [8])], [f.value_info("y", ["n"])], initializers))

    def onnx(self, draw):
        """Few bytes that ask for large tensors, many nodes or many names."""
        f = onnx_files
        size = draw.choice([1 << 10, 1 << 24, 1 << 31, 1 << 40, (1 << 63) - 1])
        shape = (f.field(1, 2) + f.field(2, f.INT64) + f.field(8, "s") + f.field(9, struct.pack("<2q", size, 8)))
        times = draw.choice([10, 2000])
        chain = [f.node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}" if i + 1 < times else "y"]) for i in range(times)]
        nodes, initializers = draw.choice([
            ([f.node("Expand", ["x", "s"], ["y"])], [shape]),
            ([f.node("ConstantOfShape", ["s"], ["y"])], [shape]),
            ([f.node("Tile", ["x", "s"], ["y"])], [shape]),
            (chain, []),
            ([f.node("Concat", ["x"] * times, ["y"], f.integer("axis", 0))], []),
            ([f.node("R" * times, ["x"], ["y"])], [])])
        self.add_model("m.onnx", nodes, initializers)
        return draw.choice([["import", "trial/m.onnx", "--max-memory", LIMIT],
                            ["run", "trial/m.onnx", "--input", "x.npy", "--out", "out/o", "--max-memory", LIMIT,
                             "--threads", 1]]), DOCUMENTED

    def safetensors(self, draw):
        header = draw.choice([
            b"{}", b"{" * 100, b" " * draw.choice([8, 1000000]),
            json.dumps({f"t{i}": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for i in range(20000)}).encode(),
            json.dumps({"a": {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 4]}}).encode(),
            json.dumps({"a": {"dtype": "F32", "shape": [1] * 5000, "data_offsets": [0, 4]}}).encode()])
        size = draw.choice([len(header), len(header), 0, 1 << 40, (1 << 64) - 1])
        path = self.write("w.safetensors", struct.pack("<Q", size) + header + bytes(4))
        return ["train", *TINY, "--init", path, "--steps", 1, "--synthetic-images", 2, "--out", "out/r"], DOCUMENTED


KINDS = ["png", "tiff", "special", "assembly", "machine_code", "image_list", "json", "machine", "formulas", "array",
         "onnx", "safetensors"]


def add_options(parser):
    parser.add_argument("--kind", choices=KINDS, help="this kind of input alone")


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], Bombs, add_options))
