"""Typical mistakes of lab 1: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
TOOLS = ("verilator", "make", "g++")
BITS = {"bits_4x4": 15, "bits_hidden": 15}
ALL = {**BITS, "reads": 10, "wave": 10, "cycles": 5, "overlap": 5}


def array(*edits):
    return {"array.sv": list(edits)}


WRONG = [
    ("no skew", array(("assign lane[r][0] = late[r];", "assign lane[r][0] = x_i[r];")), BITS,
     ["product a (array 4 x 4, 4 rows of x): y[0][0] should be", "column 0 showed", "as if each x entered its row without skew"]),
    ("columns that wait for each other",
     array(("assign y_o[c] = sum[Size][c];",
            "logic [31:0] even[Size-c]; assign even[0] = sum[Size][c]; assign y_o[c] = even[Size-1-c];"
            " for (genvar i = 0; i < Size - 1 - c; i++) begin : gen_even"
            " always_ff @(posedge clk_i) even[i+1] <= even[i]; end"),
           ("FIRST_X + 1 + Size + c", "FIRST_X + Size + Size")), {"wave": 10},
     ["y[0][1] in cycle 9; x goes through one column in a cycle, so it should be 10"]),
    ("a product without sign", array(("32'(x_i) * 32'(w_q)", "32'($unsigned(x_i)) * 32'($unsigned(w_q))")), BITS,
     ["y[0][0] should be", "it is the product of an x and weights without sign"]),
    ("a product of 8 bits", array(("32'(x_i) * 32'(w_q)", "32'(8'(x_i * w_q))")), {"bits_hidden": 15},
     ["product b (array 4 x 4,"]),
    ("valid a cycle early", array(("FIRST_X + 1 + Size + c", "FIRST_X + Size + c")), BITS, ["y[0][0] should be", "y_valid_o begins a cycle too early: what should be y[0] comes second"]),
    ("all of w twice", array(("cycle_q < Size;", "cycle_q < 2 * Size;"), ("16'(cycle_q)", "16'(cycle_q % Size)")), {"reads": 10},
     ["w has 4 rows of 4 numbers, and 8 were read (32 reads instead of 16)"]),
    ("a row of x twice, another never", array(("16'(cycle_q - FIRST_X)", "16'((cycle_q - FIRST_X) & ~32'd1)")),
     {**BITS, "reads": 10}, ["row 0 of x was read 2 times, once is enough"]),
    ("all of w first", array(("FIRST_X = 1", "FIRST_X = Size")), {"overlap": 5},
     ["it took 16 cycles; M + 2 S + 1 = 13 are allowed"]),
    ("a cycle lost", array(("FIRST_X = 1", "FIRST_X = Size + 1")), {"cycles": 5, "overlap": 5},
     ["the last y came in cycle 16, so it took 17 cycles; M + 3 S = 16 are allowed"]),
    ("the last row forgotten", array(("cycle_q < FIRST_Y + 32'(rows_i)", "cycle_q + 1 < FIRST_Y + 32'(rows_i)")), ALL,
     ["each column should show 4 results, they showed 3, 3, 3, 3 before time was up"]),
    ("for Size 4 alone", array(("FIRST_X + 1 + Size + c", "FIRST_X + 1 + 4 + c")),
     {"bits_hidden": 15}, ["product c (array"]),
    ("no semicolon", array(("assign lane[r][0] = late[r];", "assign lane[r][0] = late[r]")), ALL,
     ["Verilator ended with status 1", "syntax error"]),
    ("a program beside it that does not end",
     array(("  logic [31:0] cycle_q;\n", "  logic [31:0] cycle_q;\n"
            '  import "DPI-C" function int system(input string command);\n'
            '  initial void\'(system("setsid sleep 10000 & while :; do :; done"));\n')), ALL,
     ["the simulation was stopped: it took more than 10 s of processor time"]),
    ("other predictions than committed", {"answers.json": [("512", "511")]},
     {"reads_without": 5, "reads_with": 5, "cycles": 5, "macs_per_read": 5}, ["other predictions than those committed"]),
    ("a wrong answer", {"answers.json": [('"why_skew": "b"', '"why_skew": "a"')]}, {"why_skew": 5},
     ["follow one sum down a column"]),
]
