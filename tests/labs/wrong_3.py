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


STORE_LEFT, STORE_RIGHT = (line for line in STRAIGHT.replace(" accumulator=16", "").splitlines(True) if line.startswith("store"))
# The first two tiles of a y with the columns 0 to 3 alone.
HALF = (STRAIGHT[:STRAIGHT.index("weight_load address=1032")].replace("f32  shape=16x8", "f32  shape=16x4")
        .replace("step_x=32", "step_x=16") + "halt\n")


# Commands of an untouched folder: (line, exit status, words of what is printed).
FILES = "--machine mmu4 --dram x=x.npy --dram w=w.npy"
OFFERED = [
    ("python3 numbers.py; python3 numbers.py expected.npy", 0, []),
    (f"triptych mmu run example.s {FILES} --out corner.npy && python3 numbers.py corner.npy | wc -lw", 0, ["      4      16\n"]),
    (f"triptych mmu run product.s {FILES} --out y.npy", 2, ["product.s: no store writes y[0][0], which is DRAM byte 2048"]),
    ("python3 numbers.py y.npy", 1, ["there is no y.npy; the run that writes it has not succeeded yet"]),
]


def product(*edits):
    return {"product.s": list(edits)}


WRONG = [
    ("the machine's page", {"product.s": STRAIGHT}, {"cycles_162": 5, "cycles_152": 5},
     ["cycles: 171, 162 are allowed", "cycles: 171, 152 are allowed"]),
    ("a token forgotten", product(("store       wait=compute relu=1 address=2048", "store       relu=1 address=2048")), ALL,
     ["product.s, line 2", ": instruction", "and no token makes it wait for that: give wait=compute to this one"]),
    ("no accumulate", product(("accumulate=1 offset=1", "offset=1")), {**BITS, **CYCLES},
     ["x and w of numbers.py: y[0][0] should be", "counts when the bits are right"]),
    ("no ReLU", product(("relu=1 ", "")), {**BITS, **CYCLES}, [" should be 0 (0x00000000), and is -"]),
    ("the lower half of k first", {"product.s": BACKWARDS}, {"bits_hidden": 15, "cycles_162": 5, "cycles_152": 5},
     ["other x and w: y[", "which is nearly right: are the additions in the order k = 0, 1, ..., 7?"]),
    ("the left half alone", {"product.s": HALF}, ALL,
     ["y should be f32[16, 8], and is f32[16, 4]", "x and w of numbers.py: y has 4 columns, which are right"]),
    ("the sums of both halves in the same rows",
     {"product.s": STRAIGHT.replace(" accumulator=16", "").replace(STORE_LEFT, "").replace(STORE_RIGHT, STORE_LEFT + STORE_RIGHT)}, ALL,
     ["reads accumulator row 0", "the token of compute that it takes is that of instruction 7 (line 11: matmul"]),
    ("the first token forgotten", {"product.s": STRAIGHT.replace("load        signal=compute", "load       ")}, ALL,
     ["product.s, line 9: instruction 5 (matmul", "waits for a token of load that no earlier instruction gives"]),
    ("a tile read twice", {"product.s": TWICE}, {"weights_once": 5, "cycles_162": 5, "cycles_152": 5},
     ["(dram_weights_bytes): 160, 128 are allowed"]),
    ("a misspelt operand", product(("columns=4 rows_left", "colums=4 rows_left")), ALL, ["product.s, line", "colums"]),
    ("the right half forgotten", product(("store       wait=compute relu=1 address=2064", "#"),
                                         ("store       wait=compute relu=1 address=2320", "#")), ALL,
     ["product.s: no store writes y[0][4], which is DRAM byte 2064"]),
    ("a wrong answer", {"answers.json": [('"what_keep": "d"', '"what_keep": "A"')]}, {"what_keep": 5},
     ['"A" is not the answer']),
    ("a wrong prediction, committed", {"answers.json": [('"tiles": 4', '"tiles": 5')]},
     {"tiles": 5, "macs": 5, "issue_cycles": 5, "matmul_cycles": 5}, ["other predictions than those committed", '"tiles" was 4 and is 5; put it back']),
]
