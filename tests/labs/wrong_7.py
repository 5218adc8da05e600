"""Typical mistakes of lab 7: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
TOOLS = ()


def sheet(before, after):
    return {"formulas.json": [(before, after)]}


WRONG = [
    ("no transfer in the break-even batch", sheet("(cpu - accelerator - bytes / bandwidth)", "(cpu - accelerator)"),
     {"formula break_even": 13}, ["its transfer too", "gives"]),
    ("results of 2 bytes", sheet('"4 * m * n"', '"2 * m * n"'), {"formula result_bytes": 5}, ["results leave as float32"]),
    ("rounded down", sheet("bandwidth)) + 1", "bandwidth))"), {"formula break_even": 13}, ["smallest whole number of images"]),
    ("not rounded", sheet("floor((fixed + latency) / (cpu - accelerator - bytes / bandwidth)) + 1",
                          "(fixed + latency) / (cpu - accelerator - bytes / bandwidth)"), {"formula break_even": 13}, ["gives"]),
    ("weights once for each row", sheet('"2 * k * n"', '"2 * m * k * n"'), {"formula weights_bytes": 5},
     ["is fetched once for all rows"]),
    ("a multiply-add taken for one operation", sheet('"2 * m * k * n /', '"m * k * n /'), {"formula intensity": 7},
     ["a multiply-add is two operations"]),
    ("cycles of the weights alone", sheet("(2 * k * n + 2 * m * k + 4 * m * n) / B", "2 * k * n / B"),
     {"formula dram_cycles": 5}, ["all bytes, at B bytes per cycle"]),
    ("the results forgotten", sheet("73984", "73728"), {"bottom_bytes": 5}, ["add up the four dram_..._bytes"]),
    ("not answered", sheet('"bottom_cycles": 9368', '"bottom_cycles": null'), {"bottom_cycles": 5},
     ['not answered yet: "bottom_cycles" in formulas.json']),
    ("no JSON", {"formulas.json": "{\n"},
     {"first_layer_bytes": 5, "bottom_bytes": 5, "bottom_cycles": 5, "head_bytes": 5, "formula weights_bytes": 5,
      "formula activation_bytes": 5, "formula result_bytes": 5, "formula intensity": 7, "formula dram_cycles": 5,
      "formula break_even": 13}, ["formulas.json cannot be read"]),
    ("other predictions than committed", {"answers.json": [('"break_even": 6', '"break_even": 5')]},
     {"weights_percent_1": 5, "weights_percent_32": 5, "break_even": 5, "energy_percent": 5},
     ["other predictions than those committed"]),
    ("a wrong answer", {"answers.json": [('"q4": "c"', '"q4": "a"')]}, {"q4": 4}, ["bytes times 244 pJ"]),
]
