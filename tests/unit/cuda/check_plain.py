#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plain kernels of plain/, which `triptych kernel` compiles for the emulator, compiled by nvcc as they
are; and what it contracts into fused multiply-adds, which the emulation must contract, too."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent / "plain"


def ptx_of(nvcc, source, folder):
    target = pathlib.Path(folder) / (source.stem + ".ptx")
    command = [nvcc, "-std=c++17", "-arch=sm_90", "-ptx", str(source), "-o", str(target)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    return target.read_text()


def body(ptx, kernel):
    entry = re.search(rf"\.entry \w*{len(kernel)}{kernel}\w*\(.*?\n}}", ptx, re.S)
    return entry.group() if entry else sys.exit(f"nvcc made no kernel {kernel}")


def main():
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        print("skipped: nvcc is not installed (it comes with the CUDA toolkit)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        sources = sorted(FOLDER.glob("*.cu"))
        ptx = {source.stem: ptx_of(nvcc, source, folder) for source in sources}
    arithmetic = re.findall(r"\b((?:fma|mul|add)\.rn\.f32)\b", body(ptx["warps"], "contracted"))
    if sorted(arithmetic) != ["add.rn.f32", "fma.rn.f32", "mul.rn.f32"]:
        sys.exit(f"the kernel contracted computes by {arithmetic}: one fma, and a mul and an add")
    print(f"{len(sources)} files compile; a * b + c is one fma.rn")
    return 0


if __name__ == "__main__":
    sys.exit(main())
