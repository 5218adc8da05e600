"""Typical mistakes of lab 12: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
import pathlib

TOOLS = ()
COUNTS = {"program: sums stay": 4, "program: cycles_155": 4, "program: cycles_146": 4}
PROGRAM = {"program: bits": 8, **COUNTS}
HANDOUT = pathlib.Path(__file__).parents[2] / "experiments/labs/handouts/12-dataflows"
WEIGHTS = (HANDOUT / "weights.s").read_text()
FILES = "--machine mmu4-both --dram x=x.npy --dram w=w.npy --out y.npy"

OFFERED = [
    ("triptych trace matmul --machine mmu16-both --m 20 --k 64 --n 48", 0, ["output-stationary"]),
    ("triptych trace matmul --machine short.json --m 16 --k 1024 --n 16", 0, ["output-stationary"]),
    (f"python3 numbers.py; triptych mmu run weights.s {FILES} && python3 numbers.py y.npy > a; python3 numbers.py expected.npy | cmp - a", 0,
     ["115 cycles"]),
    (f"triptych mmu run sums.s {FILES} --overwrite", 2, ["sums.s: no store writes y[0][0]"]),
]


def program(*edits):
    return {"sums.s": list(edits)}


def formula(name, before, after):
    return {"formulas.json": [(f'"{name}": {before}', f'"{name}": {after}')]}


# x in one load, for which the first matmul waits.
ONE_LOAD = [("units=2 lines=4", "units=2 lines=8"),
            ("load        signal=compute address=x+64 pitch=16 buffer_row=8 buffer_pitch=2 units=2 lines=8 log2_group=2\n", ""),
            ("matmul      wait=load transpose=1 output_stationary=1 count=4 address=8", "matmul      transpose=1 output_stationary=1 count=4 address=8")]

WRONG = [
    ("the program of the handout", {"sums.s": WEIGHTS}, {"program: sums stay": 4}, ["256 accesses of the accumulators, 128 are allowed"]),
    ("x in one load", program(*ONE_LOAD), {"program: cycles_146": 4}, ["153 cycles, 146 are allowed"]),
    ("transpose forgotten", program(("transpose=1 ", "")), PROGRAM, ["y[0]["]),
    ("drain forgotten", program((" drain=1", "")), PROGRAM, ["sums.s"]),
    ("accumulate forgotten", program(("accumulate=1 ", "")), PROGRAM, ["x and w of numbers.py: y[0][", "should be"]),
    ("a tile for the other dataflow", program(("stream=1 ", "")), PROGRAM, ["sums.s, line"]),
    ("one sum per tile", formula("accumulators_o", '"2 * m * n"', '"2 * m * n * ceil(k / R)"'), {"formula accumulators_o": 4},
     ["when do sums leave the array?"]),
    ("weights once", formula("weights_bytes_o", '"2 * k * n * ceil(m / R)"', '"2 * k * n"'), {"formula weights_bytes_o": 6},
     ["how many rows of x does one pass of a tile serve?"]),
    ("slots of the other dataflow", formula("slots_o", '"k * ceil(m / R) * ceil(n / C)"', '"m * ceil(k / R) * ceil(n / C)"'),
     {"formula slots_o": 6}, ["a tile's rows are the slots"]),
    ("one row more", formula("largest_m", "16", "17"), {"largest_m": 6}, ["with m = 17 the product takes fewer cycles weight-stationary"]),
    ("the other dataflow for the wide layer", formula("wide_layer", '"weight-stationary"', '"output-stationary"'), {"wide_layer": 4},
     ["compare the cycles of both dataflows"]),
    ("a wrong answer", {"answers.json": [('"why_short": "d"', '"why_short": "a"')]}, {"why_short": 5}, ["in each of the two listings?"]),
]
