"""The promise of bf16-exact: one training run gives the same bits on the CPU, on GPUs, on the RTL and on twins of any size.

  same_bits.py PROGRAM [--steps 2] [--batch 1] [--gpus cuda-emulated cuda] [--twins mmu16 mmu8 mmu32 mmu4-vector] [--rtl mmu16]

Trains unet-s on each machine with one thread, on one core, and compares every loss and the fingerprint of all weights; an
option with no names leaves its machines out. Exit status 1: they differ. Machines that are not here (no GPU, no RTL in the
build) are named, and the rest is compared.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

NO_DEVICE = 3  # docs/reference/exit-codes.md


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--gpus", nargs="*", default=["cuda-emulated", "cuda"])
    parser.add_argument("--rtl", nargs="*", default=["mmu16"])
    parser.add_argument("--twins", nargs="*", default=["mmu16", "mmu8", "mmu32", "mmu4-vector"])
    return parser.parse_args()


def machines(arguments):
    for name in ["cpu", *arguments.gpus]:
        yield name, ["--backend", name]
    for simulate, names in (("twin", arguments.twins), ("rtl", arguments.rtl)):
        for name in names:
            yield (f"{name} {simulate}",
                   ["--backend", "systolic", "--machine", name, "--simulate", simulate])


def train(arguments, options, folder):
    """The finished process, its wall time and its CPU time."""
    steps = str(arguments.steps)
    command = [arguments.program.resolve(), "train", "--model", "unet-s", "--contract", "bf16-exact",
               "--epochs", "1", "--steps-per-epoch", steps, "--steps", steps, "--seed", "1",
               "--batch", str(arguments.batch), "--validation", "0", "--threads", "1", "--json",
               "--out", folder, *options]
    begin, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True,
                             check=False)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return process, time.monotonic() - begin, cpu


def is_absent(name, process):
    """No GPU, or no RTL of that machine in this build. Any other failure counts."""
    if process.returncode != NO_DEVICE or 'node "' in process.stderr:
        return False
    return name == "cuda" or (name.endswith(" rtl") and "is not built" in process.stderr)


def main():
    arguments = parse_arguments()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    first, same = None, True
    print(f"{'machine':13} {'steps':>5} {'last loss':>12} {'wall time':>10} {'CPU time':>10}  weights")
    with tempfile.TemporaryDirectory(prefix="triptych-bits-") as root:
        for number, (name, options) in enumerate(machines(arguments)):
            process, wall, cpu = train(arguments, options, pathlib.Path(root) / str(number))
            if is_absent(name, process):
                print(f"{name:13} not here: {process.stderr.strip()}")
                continue
            if process.returncode != 0:
                sys.exit(f"{name}: {process.stderr}")
            result = json.loads(process.stdout)["results"][0]
            bits = result["losses"], result["weights_sha256"]
            if len(bits[0]) != arguments.steps:
                sys.exit(f"{name}: {len(bits[0])} losses of {arguments.steps} steps")
            first = first or bits
            same = same and bits == first
            print(f"{name:13} {result['steps']:5} {bits[0][-1]:12.9f} {wall:8.1f} s {cpu:8.1f} s  "
                  f"{bits[1]}{'' if bits == first else '  DIFFERS'}", flush=True)
    print("every loss and every weight is the same" if same else "the machines differ")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
