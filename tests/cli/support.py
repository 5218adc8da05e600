"""Common part of the tests of the program: running it, small PNG files, data sets, a run's length.

Each test file is called as: FILE PROGRAM SOURCE_DIR [arguments of unittest].
"""
# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

PROGRAM = os.path.abspath(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2]).resolve()
TINY = ["--model", "unet-s", "--base", "2", "--depth", "1", "--size", "16"]
FEW = [*TINY, "--synthetic-images", "5"]
COMMANDS = ["devices", "doctor", "train", "run", "evaluate", "cross-validate", "find-lr", "bench", "calibrate", "explain",
            "quantize", "trace", "check", "compare", "kernel", "lab", "machine", "mmu", "reproduce", "synthesize", "launch", "import", "export", "page"]

# `kernel run` compiles each kernel for its registers, too, where it finds nvcc. One test does that.
NVCC = shutil.which("nvcc")
os.environ["PATH"] = ":".join(folder for folder in os.environ["PATH"].split(":")
                              if shutil.which("g++", path=folder) or not shutil.which("nvcc", path=folder))

# The compilers as links to ccache, where Debian's package has them.
CCACHE = "/usr/lib/ccache"


def compile_through_ccache():
    """Keeps the results of the compilers that the program starts: equal sources in folders of a constant name
    are compiled once. The names of these folders are not part of the result."""
    os.environ["PATH"] = f"{CCACHE}:{os.environ['PATH']}"
    os.environ["CCACHE_NOHASHDIR"] = "1"


GREY, RGB, GREY_ALPHA, RGBA = 0, 2, 4, 6
CHANNELS = {GREY: 1, RGB: 3, GREY_ALPHA: 2, RGBA: 4}


def png_bytes(width, height, kind=GREY, depth=8, sample=lambda x, y, c: (x * 7 + y * 13) & 255):
    """A PNG whose samples are sample(x, y, channel); 16 bits repeat the byte, 1 bit takes half."""
    rows = []
    for y in range(height):
        values = [sample(x, y, c) for x in range(width) for c in range(CHANNELS[kind])]
        if depth == 16:
            row = b"".join(struct.pack(">H", v * 257) for v in values)
        elif depth == 1:
            bits = "".join("1" if v > 127 else "0" for v in values)
            bits += "0" * (-len(bits) % 8)
            row = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
        else:
            row = bytes(values)
        rows.append(b"\0" + row)

    def chunk(tag, data):
        return (struct.pack(">I", len(data)) + tag + data +
                struct.pack(">I", zlib.crc32(tag + data)))

    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
            chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b""))


def png_size(path):
    return struct.unpack(">II", path.read_bytes()[16:24])


def disc(width, height):
    """A mask: 255 inside of an ellipse, else 0."""
    def sample(x, y, _):
        return 255 if (2 * x / width - 1) ** 2 + (2 * y / height - 1) ** 2 < 0.5 else 0
    return sample


def make_data(folder, sizes, kind=GREY, depth=8, mask_depth=8):
    """A data set of one image with its mask per (width, height)."""
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True)
    for i, (width, height) in enumerate(sizes):
        noise = random.Random(i)
        inside = disc(width, height)
        image = png_bytes(width, height, kind, depth,
                          lambda x, y, c: min(255, inside(x, y, c) // 2 + noise.randrange(60)))
        (folder / "images" / f"{i:02}.png").write_bytes(image)
        mask = png_bytes(width, height, GREY, mask_depth, inside)
        (folder / "masks" / f"{i:02}.png").write_bytes(mask)
    return folder


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.002)


def checkpoints(run):
    """The metadata of a run's checkpoints, the newest first; none when it has no checkpoint yet."""
    while True:
        files = sorted((run / "checkpoint").glob("checkpoint-*.json"), reverse=True)
        try:
            return [json.loads(file.read_text()) for file in files]
        except FileNotFoundError:  # a save has just removed it
            pass


# Other cases reach the same code. The part `cases` of tests/run.sh --all runs these, too.
ALL_CASES = "TRIPTYCH_ALL_CASES" in os.environ
repeats_others = unittest.skipUnless(ALL_CASES, "belongs to the part cases")
long_when_sanitized = unittest.skipIf("TRIPTYCH_SANITIZED" in os.environ, "takes minutes under a sanitizer")


class ProgramTest(unittest.TestCase):
    """A test case with a folder of its own in which the program runs."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="triptych-cli-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_program(self, *arguments, **options):
        command = [PROGRAM, *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True,
                              errors="replace", timeout=300, stdin=subprocess.DEVNULL, **options)

    def start(self, *arguments):
        """The program in the background; it is ended with the test."""
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def succeed(self, *arguments, **options):
        result = self.run_program(*arguments, **options)
        self.assertEqual(result.returncode, 0, f"{arguments}\n{result.stdout}{result.stderr}")
        return result

    def expect_error(self, code, *arguments, says=(), **options):
        """The program must exit with `code`, print nothing but errors, and say all of `says`. With --json it also
        prints them as a document."""
        result = self.run_program(*arguments, **options)
        text = f"{arguments}\n{result.stdout}{result.stderr}"
        self.assertEqual(result.returncode, code, text)
        if "--json" in arguments:
            self.assertEqual(json.loads(result.stdout)["error"]["exit_code"], code, text)
        else:
            self.assertEqual(result.stdout, "", text)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, result.stderr, text)
        return result

    def document(self, *arguments):
        """Document that the command prints with --json, which must be all of standard output."""
        return json.loads(self.succeed(*arguments, "--json").stdout)

    def train(self, *arguments):
        """The only result of `train --json`."""
        results = self.document("train", *arguments)["results"]
        self.assertEqual(len(results), 1)
        return results[0]

    def assert_same_training(self, one, other):
        for field in ("weights_sha256", "losses", "steps"):
            self.assertEqual(one[field], other[field], field)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
