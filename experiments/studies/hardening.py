#!/usr/bin/env python3
"""Cost of the hardening flags: instructions of the same work by two builds, by callgrind.

  hardening.py HARDENED PLAIN     programs of builds with TRIPTYCH_HARDEN=ON and OFF

A step's instructions are the difference of two counts, of few and of more steps. callgrind hides AVX-512, so that the
AVX2 kernels run.
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import zlib

PICTURES, SIDE = 40, 512
NETWORK = ["--base", "8", "--size", "64", "--threads", "1"]


def instructions(folder, program, *arguments):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def steps(folder, program, model, mode, few, more):
    bench = ["bench", "--model", model, *NETWORK, "--mode", mode, "--repeats"]
    return (instructions(folder, program, *bench, more) - instructions(folder, program, *bench, few)) / (more - few)


def png(rows):
    def chunk(tag, data):
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


def make_inputs(folder, program):
    noise, mask = random.Random(1), [bytes(255 * (x // 64 % 2) for x in range(SIDE))] * SIDE
    for name in ("images", "masks"):
        (folder / "data" / name).mkdir(parents=True)
    for i in range(PICTURES):
        (folder / f"data/images/{i}.png").write_bytes(png([noise.randbytes(SIDE) for _ in range(SIDE)]))
        (folder / f"data/masks/{i}.png").write_bytes(png(mask))
    train = ["train", "--model", "unet-m", "--base", "16", "--size", "64", "--synthetic-images", "4", "--steps", "1", "--batch", "1"]
    for command in ([*train, "--out", "run"], ["export", "run", "--out", "model.onnx"]):
        subprocess.run([program, *command], cwd=folder, check=True, capture_output=True)


def measurements(folder, program):
    start = instructions(folder, program, "--version")
    yield "start of the program", start
    onnx = ["import", "model.onnx", "--bind", "batch=1", "height=64", "width=64", "--backends", "cpu"]
    yield "ONNX file of 7.8 MB, read and imported", instructions(folder, program, *onnx) - start
    yield f"{2 * PICTURES} PNG files, decoded", instructions(folder, program, "data", "describe", "data") - start
    for model in ("unet-s", "unet-m"):
        yield f"{model}, inference", steps(folder, program, model, "infer", 2, 12)
        yield f"{model}, training step", steps(folder, program, model, "train", 2, 6)


def main(hardened, plain):
    with tempfile.TemporaryDirectory(prefix="triptych-hardening-") as name:
        folder = pathlib.Path(name)
        make_inputs(folder, plain)
        print("| work | hardened, million instructions | plain | difference |\n|---|---:|---:|---:|")
        for (work, hard), (_, soft) in zip(measurements(folder, hardened), measurements(folder, plain)):
            print(f"| {work} | {hard / 1e6:.2f} | {soft / 1e6:.2f} | {100 * (hard / soft - 1):+.2f} % |", flush=True)


if __name__ == "__main__":
    main(*(str(pathlib.Path(word).resolve()) for word in sys.argv[1:3]))
