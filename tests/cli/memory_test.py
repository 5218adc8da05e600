"""--max-memory against the peak of the process: every kind of file, each with several limits.

A command either keeps its peak below the limit and the constant overhead, or exits with 2 and names
the option. A row says from which limit on it must succeed, so that no row can pass by refusing.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import struct
import subprocess
import sys
import unittest
import zlib

from onnx_files import *
from support import *

MIB = 1 << 20
OVERHEAD = 32  # MiB, of docs/reference/cli.md: the program itself, its libraries, stacks
EVER = 1 << 20  # more MiB than any row needs
# The peak of a grandchild, as that of a child includes the test's own memory before exec().
PEAK = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
print(json.dumps([done.returncode, peak, done.stdout, done.stderr]))
"""


def floats(name, mebibytes):
    """An initialiser of zeros."""
    count = mebibytes * MIB // 4
    return field(1, count) + field(2, FLOAT) + field(8, name) + field(9, bytes(4 * count))


def expand(name):
    return node("Expand", ["x", "to"], [name])


def png(width, height, more=()):
    """Black, in colours, with further chunks before its pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    packer = zlib.compressobj(9)
    pixels = b"".join(packer.compress(bytes(1 + 3 * width)) for _ in range(height)) + packer.flush()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            b"".join(chunk(*one) for one in more) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def jpeg(width, height, progressive):
    """One grey value: each block takes one bit, or two, which are 0."""
    def segment(marker, data):
        return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data
    tables = b"".join(bytes([kind, 1, *[0] * 15, 0]) for kind in (0x00, 0x10))
    frame = struct.pack(">BHHB", 8, height, width, 1) + bytes([1, 0x11, 0])
    scan = bytes([1, 1, 0, 0, 0 if progressive else 63, 0])
    bits = width // 8 * (height // 8) * (1 if progressive else 2)
    return (b"\xFF\xD8" + segment(0xDB, bytes([0, *[1] * 64])) + segment(0xC2 if progressive else 0xC0, frame) +
            segment(0xC4, tables) + segment(0xDA, scan) + bytes(bits // 8) + b"\xFF\xD9")


def tiff(width, height):
    """Black, in one deflated strip."""
    data = zlib.compress(bytes(width * height), 9)
    entries = [(256, width), (257, height), (258, 8), (259, 8), (262, 1), (273, 8 + 2 + 12 * 9 + 4), (277, 1),
               (278, height), (279, len(data))]
    return (b"II*\0" + struct.pack("<IH", 8, len(entries)) +
            b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries) + bytes(4) + data)


@unittest.skipIf("TRIPTYCH_SANITIZED" in os.environ, "a sanitizer takes memory of its own")
class Memory(ProgramTest):
    def peak_of(self, limit, *arguments):
        command = [sys.executable, "-ISc", PEAK, PROGRAM, *map(str, arguments), "--max-memory", str(limit)]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True)
        return json.loads(result.stdout)

    def expect_bounded(self, name, limits, enough, *arguments):
        """`enough`: the first of `limits`, in MiB, with which the command must succeed."""
        for limit in limits:
            code, peak, out, errors = self.peak_of(limit, *arguments)
            row = f"{name}, limit {limit} MiB: exit code {code}, peak {peak} MiB"
            print(row)
            with self.subTest(f"{row}\n{out}{errors}"):
                self.assertIn(code, (0, 2))
                self.assertLessEqual(peak, limit + OVERHEAD)
                if limit >= enough:
                    self.assertEqual(code, 0)
                if code == 2:
                    self.assertRegex(errors, r"needs \d+ MiB of memory; \d+ of \d+ MiB are in use;.*--max-memory")

    def expect_model(self, name, limits, enough, *parts, inputs=()):
        (self.folder / "model.onnx").write_bytes(model(*parts))
        self.expect_bounded(name, limits, enough, "run", "model.onnx", *inputs, "--out", "out", "--threads", "2",
                            "--overwrite")

    def test_models(self):
        save_npy(self.folder / "x.npy", (1,), [1])
        to = [value_info("x", [1]), value_info("to", [1], INT64)]
        given = ["--input", "x.npy", "--input", "to.npy"]

        def wide(mebibytes):
            save_npy(self.folder / "to.npy", (1,), [mebibytes * MIB // 4], "<i8")
            return mebibytes * MIB // 4
        size = wide(60)
        self.expect_model("one output", [16, 64, 100, 160], 160, [expand("y")], to, [value_info("y", [size])], inputs=given)
        size = wide(16)
        names = [f"y{i}" for i in range(8)]
        self.expect_model("many outputs", [64, 192, 256], 192, [expand(name) for name in names], to,
                          [value_info(name, [size]) for name in names], inputs=given)
        size = wide(120)
        sizes = [expand("wide"), node("ReduceSum", ["wide"], ["y"], integer("keepdims", 1))]
        self.expect_model("intermediate", [64, 160], 160, sizes, to, [value_info("y", [1])], inputs=given)
        constant = [node("Add", ["x", "w"], ["wide"]), node("ReduceSum", ["wide"], ["y"], integer("keepdims", 1))]
        self.expect_model("constants", [32, 64, 128, 192], 192, constant, to[:1], [value_info("y", [1])],
                          [floats("w", 60)], inputs=given[:2])
        filled = [node("ConstantOfShape", ["to"], ["y"])]
        size = wide(100)
        self.expect_model("filled", [32, 110, 320], 320, filled, to[1:], [value_info("y", [size])], inputs=given[2:])

    def test_arrays(self):
        count = 40 * MIB // 4
        for kind, width in (("<f4", 4), ("<f8", 8)):
            head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({count},), }}\n".encode()
            (self.folder / "x.npy").write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head +
                                                bytes(count * width))
            one = value_info("x", [count], DOUBLE if width == 8 else FLOAT)
            self.expect_model(f".npy {kind}", [32, 64, 136], 136,
                              [node("ReduceSum", ["x"], ["y"], integer("keepdims", 1))], [one],
                              [value_info("y", [1], DOUBLE if width == 8 else FLOAT)], inputs=["--input", "x.npy"])

    def test_pictures(self):
        (self.folder / "p/images").mkdir(parents=True)

        def pictures(name, content, limits, enough, *command):
            path = self.folder / "p/images" / name
            path.write_bytes(content)
            self.expect_bounded(f"{command[0]} {name}", limits, enough, *command)
            path.unlink()
        describe = ["data", "describe", "p"]
        self.succeed("train", *FEW, "--steps", "1", "--threads", "1", "--out", "r")
        run = ["run", "r", "--input", "p/images", "--out", "out", "--threads", "2", "--overwrite"]
        black = png(4096, 4096)
        pictures("a.png", black, [32, 128, 320], 320, *describe)
        pictures("a.png", black, [64, 400], EVER, *run)
        text = zlib.compress(bytes([65]) * (7 * MIB), 9)
        texts = [(b"zTXt", b"k%d\0\0" % i + text) for i in range(40)]
        pictures("texts.png", png(16, 16, texts), [64, 400], 400, *describe)
        pictures("a.jpg", jpeg(4096, 4096, False), [32, 64, 128], 128, *describe)
        pictures("scans.jpg", jpeg(4096, 4096, True), [32, 64, 128], 128, *describe)
        pictures("a.tif", tiff(8192, 4096), [32, 128, 200], 200, *describe)
        pictures("a.tif", tiff(8192, 4096), [64, 400], EVER, *run)

    def test_weights(self):
        sizes = 100 * MIB
        header = json.dumps({"w": {"dtype": "U8", "shape": [sizes], "data_offsets": [0, sizes]}}).encode()
        content = struct.pack("<Q", len(header)) + header + bytes(sizes)
        (self.folder / "w.safetensors").write_bytes(content)
        train = ["train", *FEW, "--steps", "1", "--threads", "1", "--out", "s", "--overwrite", "--init", "w.safetensors"]
        for limit in (32, 64):
            self.expect_bounded("weights", [limit], EVER, *train)

    def test_checkpoints(self):
        wide = ["--model", "unet-s", "--base", "48", "--depth", "3", "--size", "16", "--batch", "1"]
        self.succeed("train", *wide, "--synthetic-images", "5", "--steps", "1", "--threads", "2", "--out", "r")
        newest = max((self.folder / "r/checkpoint").glob("*.safetensors"))
        self.assertGreater(newest.stat().st_size, 40 * MIB)
        (self.folder / "a.png").write_bytes(png(16, 16))
        run = ["run", "r", "--input", "a.png", "--out", "out", "--threads", "1", "--overwrite"]
        self.expect_bounded("checkpoint", [16, 32, 400], 400, *run)
        refused = self.expect_error(2, *run, "--max-memory", "32", says="--max-memory")
        self.assertNotIn("damaged", refused.stderr)  # nor does the one before it take its place
        resumed = ["train", "--resume", "r", "--steps", "2", "--threads", "2"]
        self.expect_bounded("resume", [32, 64, 600], 600, *resumed)


class Option(ProgramTest):
    def test_every_command_has_it(self):
        for command in [*([c] for c in COMMANDS), ["bench", "matmul"], ["data", "describe"], ["machine", "show"]]:
            self.assertIn("--max-memory", self.succeed(*command, "--help").stdout, command)
        for wrong in ("0", "-1", "1.5", "much"):
            self.expect_error(2, "devices", "--max-memory", wrong, says="--max-memory")

    def test_a_training_resumes_under_another_limit(self):
        model = ["--model", "unet-s", "--size", "64", "--synthetic-images", "5"]
        self.succeed("train", *model, "--steps", "1", "--threads", "1", "--out", "r", "--max-memory", "300")
        self.succeed("train", "--resume", "r", "--steps", "2", "--max-memory", "200")
        self.expect_error(2, "train", "--resume", "r", "--steps", "3", "--max-memory", "1", says="--max-memory")


if __name__ == "__main__":
    main()
