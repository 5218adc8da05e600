# SPDX-License-Identifier: Apache-2.0
"""Random kernels with diverging warps, on the emulated GPU against a lockstep interpreter.

A trial draws a kernel (branches, loops, early exits, shared and volatile memory, atomic operations, barriers of the
block and of parts of a warp) and its inputs. Where the interpreter finds races, the program must report one of them;
else every line's requests, lanes, sectors and passes must be the interpreter's.

Options: campaign.py. 1,000 trials take three minutes of processor time.
"""
import json
import random
import struct
import sys

from campaign import Campaign, Failure, main
from warp_interpreter import Run
from warp_kernels import NUMBERS, draw_kernel

KERNELS = 20  # of one source


def write_npy(path, values):
    header = "{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack(f"<{len(values)}i", *values))


class Warps(Campaign):
    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.batch = None
        self.kernels = {}
        self.races = self.counted = 0

    def trial(self, seed, number):
        if self.batch != number // KERNELS:
            self.build(seed, number // KERNELS)
        return super().trial(seed, number)

    def build(self, seed, batch):
        """Compiles the kernels of so many trials at once."""
        self.batch, self.kernels = batch, {}
        text = ""
        for number in range(batch * KERNELS, (batch + 1) * KERNELS):
            kernel = draw_kernel(random.Random(f"kernel {seed} {number}"), f"k{number}", 1 + text.count("\n"))
            self.kernels[number] = kernel
            text += kernel.text
        (self.folder / "kernels.cu").write_text(text)
        self.require("kernel", "build", "kernels.cu", "--out", "kernels.so", "--overwrite")

    def attempt(self, draw, number):
        kernel = self.kernels[number]
        numbers = [draw.randrange(12) for _ in range(NUMBERS)]
        write_npy(self.folder / "c.npy", numbers)
        stores = sum(operation.space == "y" for operation in kernel.operations)
        done = self.execute(["kernel", "run", "kernels.so", "c.npy", f"i32:{NUMBERS}=count",
                             f"i32:{stores * kernel.threads * kernel.blocks}", "--kernel", kernel.name, "--grid",
                             kernel.blocks, "--block", kernel.threads, "--json"])
        self.judge(done, codes={0, 1})
        result = json.loads(done.printed)["results"][0]
        expected = Run(kernel, numbers)
        if expected.races:
            self.races += 1
            self.compare_races(result["findings"], expected.races)
        else:
            self.counted += 1
            self.compare_counts(result, expected.lines)

    @staticmethod
    def compare_races(findings, races):
        pairs = sorted(map(sorted, races))
        if not findings:
            raise Failure(f"nothing was found, but lines race: {pairs[:4]}")
        found = findings[0]
        if found["kind"] != "race" or not any(found["line"] in pair for pair in pairs):
            raise Failure(f"{found['kind']} at line {found['line']}: {found['message']}; lines that race: {pairs[:4]}")

    @staticmethod
    def compare_counts(result, expected):
        if result["findings"]:
            found = result["findings"][0]
            raise Failure(f"{found['kind']} at line {found['line']}, where there is none: {found['message']}")
        counted = {(each["line"], each["access"]):
                   [each["requests"], each["lanes"], each.get("sectors", each.get("wavefronts"))]
                   for each in result["counters"]["lines"]}
        for key in sorted(counted.keys() | expected.keys()):
            if counted.get(key) != expected.get(key):
                raise Failure(f"{key[1]} of line {key[0]}: [requests, lanes, sectors or passes] is {counted.get(key)}, "
                              f"and in lockstep {expected.get(key)}")


def make(program, folder, _):
    return Warps(program, folder)


if __name__ == "__main__":
    sys.exit(main(__doc__, make))
