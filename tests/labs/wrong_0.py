"""Typical mistakes of lab 0: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
TOOLS = ()
ALL = {"k": 10, "n": 10, "cycle": 20, "terms": 10, "cycles": 10}
CYCLE = '"cycle": {"m": 1, "row": 1, "column": 1, "constant": 0}'


def laws(before, after):
    return {"laws.json": [(before, after)]}


RUN = "triptych mmu run product.s --machine mmu4 --dram x=x.npy --dram w=w.npy --per-pe cells.json"
# Commands of an untouched folder: (line, exit status, words of what is printed).
OFFERED = [
    *((f"python3 watch.py {m} {k} {n} && {RUN} && python3 watch.py cells.json", 0,
       [f"{m + k + n - 3} after the first multiply-add: 1 cell works\n"]) for m, k, n in ((6, 3, 2), (9, 2, 4), (1, 1, 3))),
    ("sed -i 's/^X = .*/X = [[1, 2], [3, 4], [5, 6]]/; s/^W = .*/W = [[7], [8]]/' watch.py && python3 watch.py && "
     f"{RUN} && python3 watch.py cells.json", 0, ["3 after the first multiply-add: 1 cell works", "  6 x  8 ->  83"]),
    ("python3 watch.py && python3 watch.py cells.json", 1, ["there is no cells.json: triptych mmu run"]),
    ("python3 watch.py 4 5 4", 1, ["one tile of weights is 4 x 4 at most"]),
    ("sed -i 's/^W = .*/W = [[7, 8, 9]]/' watch.py && python3 watch.py", 1, ["as many numbers as w has rows"]),
]

WRONG = [
    ("x reaches all columns at once", laws(CYCLE, CYCLE.replace('"column": 1', '"column": 0')), {"cycle": 20},
     ["x 4", "cell (0, 1) works on row 0 of x in cycle 1, your law says 0"]),
    ("rows and columns for each other",
     {"laws.json": [('"k": {"row": 1, "column": 0', '"k": {"row": 0, "column": 1'),
                    ('"n": {"row": 0, "column": 1', '"n": {"row": 1, "column": 0')]}, {"k": 10, "n": 10},
     ["of w in cycle 1; with k = 1 it would not", "with n = 0 it would not"]),
    ("the own product is forgotten", laws('"terms": {"row": 1, "column": 0, "constant": 1}',
                                          '"terms": {"row": 1, "column": 0, "constant": 0}'), {"terms": 10},
     ["cell (0, 0) hands down", "in cycle 0, which is not the sum of 0 products"]),
    ("one end is counted twice", laws('"constant": -2', '"constant": -1'), {"cycles": 10},
     ["cells work in", "your law says"]),
    ("as if the skew were none", laws('"cycles": {"M": 1, "K": 1, "N": 1, "constant": -2}',
                                      '"cycles": {"M": 1, "K": 0, "N": 0, "constant": 0}'), {"cycles": 10},
     ["cells work in", "your law says"]),
    ("a law left open", laws(CYCLE, CYCLE.replace('"m": 1', '"m": null')), {"cycle": 20},
     ['"cycle" has no whole number for "m" yet']),
    ("half a cycle", laws(CYCLE, CYCLE.replace('"m": 1', '"m": 0.5')), {"cycle": 20},
     ['"cycle" has no whole number for "m" yet']),
    ("no JSON", {"laws.json": "k = row\n"}, ALL, ["laws.json: not valid JSON", "laws.json cannot be read: see above"]),
    ("other predictions than committed", {"answers.json": [('"cells_3": 10', '"cells_3": 16')]},
     {"activation_00": 5, "cells_3": 5, "sum_31": 5, "cycles": 5}, ["other predictions than those committed"]),
    ("a wrong answer", {"answers.json": [('"many_rows": "d"', '"many_rows": "c"')]}, {"many_rows": 5},
     ["what does your law"]),
    ("a letter and more", {"answers.json": [('"many_rows": "d"', '"many_rows": "d)"')]}, {"many_rows": 5},
     ['"d)" is no answer; give the letter of one']),
]
