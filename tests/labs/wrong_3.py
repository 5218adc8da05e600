"""Typical mistakes of lab 3: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
TOOLS = ()
CYCLES = {"weights_once": 5, "cycles_171": 5, "cycles_162": 5, "cycles_152": 5}
BITS = {"bits": 15, "bits_hidden": 15}
ALL = {"runs": 10, **BITS, **CYCLES}

# As the machine's page has it: all of x first, then tile after tile.
STRAIGHT = """\
.input  x address=0    type=bf16 shape=16x8
.input  w address=1024 type=bf16 shape=8x8
.output y address=2048 type=f32  shape=16x8
load        signal=compute address=x pitch=16 buffer_pitch=2 units=2 lines=16 log2_group=2
set_stream  in_height=1 in_width=16 out_height=1 out_width=16 stride_x=1 step_x=2
set_taps    channels=8 kernel_width=1 log2_group=2
set_output  out_height=1 out_width=16 step_x=32
weight_load address=1024 pitch=16 rows=4 columns=4
matmul      wait=load count=16 rows_left=1 columns_left=16
weight_load address=1088 pitch=16 rows=4 columns=4
matmul      accumulate=1 signal=store count=16 rows_left=1 columns_left=16 offset=1 channel=4
store       wait=compute relu=1 address=y count=16 columns=4 rows_left=1 columns_left=16
weight_load address=1032 pitch=16 rows=4 columns=4
matmul      count=16 rows_left=1 columns_left=16 accumulator=16
weight_load address=1096 pitch=16 rows=4 columns=4
matmul      accumulate=1 signal=store count=16 rows_left=1 columns_left=16 offset=1 channel=4 accumulator=16
store       wait=compute relu=1 address=2064 count=16 columns=4 rows_left=1 columns_left=16 accumulator=16
halt
"""
# The tile of each half of x anew, where keep=1 would do.
TWICE = STRAIGHT.replace("matmul      wait=load count=16 rows_left=1 columns_left=16\n",
                         "matmul      wait=load count=8 rows_left=1 columns_left=16\n"
                         "weight_load address=1024 pitch=16 rows=4 columns=4\n"
                         "matmul      count=8 address=16 x=8 rows_left=1 columns_left=8 accumulator=8\n")
# The upper half of k last: the right sum of small numbers, other bits of others.
BACKWARDS = (STRAIGHT.replace("address=1024 pitch", "address=A pitch").replace("address=1088 pitch", "address=1024 pitch")
             .replace("address=A pitch", "address=1088 pitch")
             .replace("matmul      wait=load count=16 rows_left=1 columns_left=16\n",
                      "matmul      wait=load count=16 rows_left=1 columns_left=16 offset=1 channel=4\n")
             .replace("columns_left=16 offset=1 channel=4\nstore       wait=compute relu=1 address=y",
                      "columns_left=16\nstore       wait=compute relu=1 address=y"))


def product(*edits):
    return {"product.s": list(edits)}


WRONG = [
    ("the machine's page", {"product.s": STRAIGHT}, {"cycles_162": 5, "cycles_152": 5},
     ["cycles: 171, 162 are allowed", "cycles: 171, 152 are allowed"]),
    ("a token forgotten", product(("store       wait=compute relu=1 address=2048", "store       relu=1 address=2048")), ALL,
     ["product.s: instruction", "and no token makes it wait for that"]),
    ("no accumulate", product(("accumulate=1 offset=1", "offset=1")), {**BITS, **CYCLES},
     ["x and w of numbers.py: y[0][0] should be", "counts when the bits are right"]),
    ("no ReLU", product(("relu=1 ", "")), {**BITS, **CYCLES}, [" should be 0 (0x00000000), and is -"]),
    ("the lower half of k first", {"product.s": BACKWARDS}, {"bits_hidden": 15, "cycles_162": 5, "cycles_152": 5},
     ["other x and w: y["]),
    ("a tile read twice", {"product.s": TWICE}, {"weights_once": 5, "cycles_162": 5, "cycles_152": 5},
     ["(dram_weights_bytes): 160, 128 are allowed"]),
    ("a misspelt operand", product(("columns=4 rows_left", "colums=4 rows_left")), ALL, ["product.s, line", "colums"]),
    ("the right half forgotten", product(("store       wait=compute relu=1 address=2064", "#"),
                                         ("store       wait=compute relu=1 address=2320", "#")), ALL,
     ["no store writes DRAM byte 2064"]),
    ("a wrong answer", {"answers.json": [('"what_keep": "d"', '"what_keep": "A"')]}, {"what_keep": 5},
     ['"A" is not the answer']),
    ("a wrong prediction, committed", {"answers.json": [('"tiles": 4', '"tiles": 5')]},
     {"tiles": 5, "macs": 5, "issue_cycles": 5, "matmul_cycles": 5}, ["other predictions than those committed"]),
]
