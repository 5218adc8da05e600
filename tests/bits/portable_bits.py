"""Bits of the host's own arithmetic do not depend on compiler, optimisation or fused multiply-adds.

portable_bits.py SOURCE_DIR compiles portable_bits.cpp and what it is about with each compiler that is here, with and
without instructions that fuse, and compares what they print with what is recorded below.
"""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCES = ["tests/bits/portable_bits.cpp", "core/base/error.cpp", "core/base/wide_math.cpp",
           *(f"experiments/training/data/{stem}.cpp" for stem in ("augment", "intensity", "synthetic", "synthetic_noise"))]
# Unused functions of a source, and what they call, are left out.
FLAGS = ["-std=c++20", "-ffp-contract=off", "-fno-math-errno", "-ffunction-sections", "-Wl,--gc-sections"]
WAYS = [["-O2"], ["-O2", "-mavx2", "-mfma"]]
RECORDED = """\
functions 7257930e626d06d2
normals 342e30d325df29d3
picture 058e49cc5adbe36a
patches efad11f6d7ce38a3
"""


def fuses():
    """True when this processor has fused multiply-adds."""
    try:
        return " fma " in pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def printed(source, folder, compiler, way):
    program = pathlib.Path(folder) / f"{compiler}{'_'.join(way)}"
    sources = [str(source / path) for path in SOURCES]
    subprocess.run([compiler, *FLAGS, *way, f"-I{source}", *sources, "-lfmt", "-o", program], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    compilers = [name for name in ("g++", "clang++") if shutil.which(name)]
    ways = [(compiler, way) for compiler in compilers for way in WAYS if fuses() or "-mfma" not in way]
    wrong = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda one: printed(source, folder, *one), ways)
        for (compiler, way), found in zip(ways, results):
            same = found == RECORDED
            print(f"{compiler} {' '.join(way)}: {'the recorded bits' if same else 'OTHER BITS'}")
            if not same:
                wrong.append(found)
    for found in wrong:
        print(f"recorded:\n{RECORDED}found:\n{found}")
    sys.exit(1 if wrong or not ways else 0)


main()
