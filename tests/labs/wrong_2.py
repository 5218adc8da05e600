"""Typical mistakes of lab 2: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
TOOLS = ()


def sheet(before, after):
    return {"formulas.json": [(before, after)]}


def machine(*edits):
    return {"machine.json": list(edits)}


WRONG = [
    ("parts of tiles counted as parts", sheet('"ceil(channels * taps / R) * ceil(filters / C) * positions"',
                                              '"channels * taps / R * filters / C * positions"'),
     {"formula issue_cycles": 8}, ["Parts of a tile take as long as a tile", "gives"]),
    ("idle columns forgotten", sheet("(ceil(channels * taps / R) * R * ceil(filters / C) * C)",
                                     "(ceil(channels * taps / R) * R * filters)"),
     {"formula filled": 8}, ["which have a weight, averaged over the tiles?"]),
    ("weights moved for each row", sheet('"ceil(k / R)', '"m * ceil(k / R)'), {"formula weights_moved": 8},
     ["once, however few rows of activations meet it"]),
    ("only the weights that are there", sheet("ceil(k / R) * ceil(n / C) * R * C", "k * n"), {"formula weights_moved": 8},
     ["every tile is moved whole"]),
    ("a batch that is too small", sheet('"smallest_batch": 21', '"smallest_batch": 16'), {"smallest_batch": 9},
     ["with 16 rows less than nine tenths"]),
    ("a batch that is larger than needed", sheet('"smallest_batch": 21', '"smallest_batch": 32'), {"smallest_batch": 9},
     ["32 rows feed the array, but 31 do, too"]),
    ("no whole number", sheet('"smallest_batch": 21', '"smallest_batch": "about 20"'), {"smallest_batch": 9},
     ["is no whole number"]),
    ("the square array", machine(('"rows": 32', '"rows": 16'), ('"columns": 8', '"columns": 16')), {"machine": 9},
     ["16 x 16 cells take 22753 cycles for the four layers, and 18100 are the budget"]),
    ("more cells than are paid for", machine(('"columns": 8', '"columns": 16')), {"machine": 9}, ["256 cells are paid for"]),
    ("a better memory", machine(('"latency": 35', '"latency": 1')), {"machine": 9}, ["is not that of mmu16"]),
    ("rows that no machine has", machine(('"rows": 32', '"rows": 1')), {"machine": 9}, ["machine.json: ", "rows"]),
    ("utilisation for stalls", sheet('"head_stalls": 485', '"head_stalls": 97'), {"head_stalls": 3},
     ["it is cycles less issue_cycles"]),
    ("other predictions than committed", {"answers.json": [('"head_percent": 3', '"head_percent": 2.8')]},
     {"first_layer_percent": 5, "head_percent": 5, "batch_1_percent": 5, "batch_16_times_as_long": 5},
     ["other predictions than those committed"]),
    ("a wrong answer", {"answers.json": [('"q1": "c"', '"q1": "a"')]}, {"q1": 4}, ["27 is how many tiles of 16"]),
]
