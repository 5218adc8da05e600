"""Typical mistakes of lab 10: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
TOOLS = ()
APPLY = {"apply: values": 8, "apply: bits": 6, "apply: cycles": 4}
STATISTICS = {"statistics: mean": 6, "statistics: variance": 10, "statistics: cycles": 6}
ROWS = {"rows: values": 6, "rows: bits": 8, "rows: cycles": 3, "rows: packed": 3}
MACHINE = "--machine mmu4-vector"

# The sum of 64 rows one after the other, in the place of six halvings.
CHAIN = ("vector_op    operation=add destination=64 a=0 b=1 count=1\n"
         + "".join(f"vector_op    operation=add destination=64 a=64 b={row} count=1\n" for row in range(2, 64)))
HALVINGS = """\
vector_op    operation=add destination=64 step=1 a=0 a_step=1 b=32 b_step=1 count=32
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=80 b_step=1 count=16
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=72 b_step=1 count=8
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=68 b_step=1 count=4
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=66 b_step=1 count=2
vector_op    operation=add destination=64 a=64 b=65 count=1
"""
STEP = """\
vector_op    operation=multiply destination=56 step=1 a=48 a_step=1 b=48 b_step=1 count=8
vector_op    operation=fma destination=56 step=1 a=40 a_step=1 b=56 b_step=1 c=37 count=8
vector_op    operation=multiply destination=48 step=1 a=48 a_step=1 b=56 b_step=1 count=8
"""
FMA = "vector_op    operation=fma destination=4 step=1 a=4 a_step=1 b=1 c=3 count=64\n"

OFFERED = [
    ("python3 numbers.py", 0, []),
    (f"triptych mmu run centre.s {MACHINE} --dram square.npy --out centred.npy && python3 numbers.py centred.npy", 0, ["80 cycles"]),
    (f"triptych mmu run apply.s {MACHINE} --dram p=p.npy --dram x=x.npy --out y.npy", 2, ["apply.s: no store writes y[0][0]"]),
    ("python3 numbers.py y.npy", 1, ["there is no y.npy; the run that writes it has not succeeded yet"]),
]

ALL = "a_step=1 count=32"
NEWTON = [f"multiply destination=96 step=1 a=64 b=64 b_step=1 {ALL}", f"fma destination=96 step=1 a=32 b=96 b_step=1 c=161 {ALL}",
          f"multiply destination=64 step=1 a=64 b=96 b_step=1 {ALL}"]
SUM = [f"rotate scalar=2 destination=64 step=1 a=32 {ALL}", f"add destination=32 step=1 a=32 b=64 b_step=1 {ALL}",
       f"rotate scalar=1 destination=64 step=1 a=32 {ALL}", f"add destination=32 step=1 a=32 b=64 b_step=1 {ALL}",
       f"multiply destination=32 step=1 a=32 constant=1 scalar=0x3e800000 {ALL}"]
# Every operation on all 32 rows.
STRAIGHT = (".input  x address=0    type=f32 shape=32x4\n.output z address=2048 type=f32 shape=32x4\n"
            "vector_load  address=x pitch=16 row=0 count=32 columns=4\n"
            + "".join(f"vector_op operation={each}\n" for each in [
                f"rotate scalar=2 destination=32 step=1 a=0 {ALL}", f"add destination=32 step=1 a=0 b=32 b_step=1 {ALL}",
                *SUM[2:], f"subtract destination=0 step=1 a=0 b=32 b_step=1 {ALL}",
                f"multiply destination=32 step=1 a=0 b=0 b_step=1 {ALL}", *SUM,
                f"add destination=32 step=1 a=32 constant=1 scalar=0x3727c5ac {ALL}",
                "fill destination=160 constant=1 scalar=0x5f3759df count=1", "fill destination=161 constant=1 scalar=0x3fc00000 count=1",
                f"shift_right destination=64 step=1 a=32 constant=1 scalar=1 {ALL}",
                "subtract_integer destination=64 step=1 a=160 b=64 b_step=1 count=32",
                f"multiply destination=32 step=1 a=32 constant=1 scalar=0xbf000000 {ALL}", *NEWTON * 3,
                f"multiply destination=0 step=1 a=0 b=64 b_step=1 {ALL}"])
            + "vector_store address=z pitch=16 row=0 count=32 columns=4\nhalt\n")


def apply(*edits):
    return {"apply.s": list(edits)}


def statistics(*edits):
    return {"statistics.s": list(edits)}


def rows(*edits):
    return {"rows.s": list(edits)}


WRONG = [
    ("the rows one after the other", statistics((HALVINGS, CHAIN)), {"statistics: mean": 6, "statistics: variance": 10, "statistics: cycles": 6},
     ["other numbers: mean[0][", "which is nearly right: are the operations and their order those of the handout?"]),
    ("a step forgotten", apply(("c=3 count=64", "c=3 c_step=1 count=64")), APPLY, ["apply.s, line 13: instruction 3 (vector_op", "after it has written it"]),
    ("a product and a sum", apply((FMA, FMA.replace("fma", "multiply").replace(" c=3", "")
                                   + "vector_op    operation=add destination=4 step=1 a=4 a_step=1 b=3 count=64\n")),
     {"apply: bits": 6, "apply: cycles": 4}, ["other numbers: y[", "which is nearly right"]),
    ("no ReLU", apply(("operation=larger", "operation=move")), APPLY, ["should be 0 (0x00000000), and is -"]),
    ("two loads", apply(("row=0 count=68", "row=0 count=4"), ("# the factor", "vector_load  address=x pitch=16 row=4 count=64 columns=4\n#")),
     {"apply: cycles": 4}, ["cycles, 460 are allowed; how many operations and loads are there?"]),
    ("the sums over x", statistics((HALVINGS, HALVINGS.replace("=64 ", "=0 ").replace("b=80", "b=16").replace("b=72", "b=8")
                                    .replace("b=68", "b=4").replace("b=66", "b=2").replace("b=65", "b=1")), ("a=64 constant", "a=0 constant")),
     {"statistics: variance": 10, "statistics: cycles": 6}, ["variance[0]["]),
    ("one rotation", rows(("vector_op    operation=rotate scalar=1 destination=96 step=1 a=64 a_step=1 count=32\n", ""),
                          ("a=64 a_step=1 b=96 b_step=1", "a=64 a_step=1 b=64 b_step=1")), ROWS, ["z[0]["]),
    ("two steps of Newton's method", rows((STEP * 3, STEP * 2)), {"rows: bits": 8, "rows: cycles": 3, "rows: packed": 3},
     ["z[", "which is nearly right"]),
    ("the same number in four lanes", {"rows.s": STRAIGHT}, {"rows: packed": 3},
     ["1154 cycles, 880 are allowed; in how many lanes is the same number?"]),
    ("rows that nothing wrote", rows(("a=0 a_step=1 b=64 b_step=1 count=32\nvector_store", "a=0 a_step=1 b=128 b_step=1 count=32\nvector_store")), ROWS,
     ["rows.s, line", "reads row 128 of the vector memory", "it does not run: see above"]),
    ("a wrong answer", {"answers.json": [('"why_pack": "c"', '"why_pack": "a"')]}, {"why_pack": 5}, ["what is in its four lanes?"]),
]
