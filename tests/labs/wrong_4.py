"""Typical mistakes of lab 4: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
TOOLS = ("verilator", "make", "g++")
PRODUCT = """\
.input  x address=0  type=bf16 shape=1x4
.input  w address=32 type=bf16 shape=4x4
.output y address=64 type=f32  shape=1x4
.values x 1 2 3 4
.values w 1 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1
.expect y 1 2 3 4
load        signal=compute address=x pitch=8 buffer_pitch=1 units=1 lines=1 log2_group=2
set_stream  in_height=1 in_width=1 out_height=1 out_width=1 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
set_output  out_height=1 out_width=1 step_x=16
weight_load address=w pitch=8 rows=4 columns=4
matmul      wait=load signal=store count=1 rows_left=1 columns_left=1
store       wait=compute address=y count=1 columns=4 rows_left=1 columns_left=1
halt
"""
SHOWN = ("group_of_one", "ties_away", "relu_hides_nan", "always_feedback", "columns_beyond_the_tile",
         "rows_below_the_tile", "a_row_below_the_input", "row_a_column_short", "tokens_stay",
         "hazard_a_cycle_early", "bias_is_the_multiplier", "queue_a_word_short")
TESTS = ("chain", "convolution", "flight", "numbers", "output", "pool", "product", "queue", "remainder", "reuse",
         "taps", "tokens")
ALL = {"no_false_alarm": 8, "economy": 4, **{name: 2 for name in SHOWN}, **{f"hidden_{i}": 3 for i in range(1, 9)}}


def test(name, *edits):
    return {f"tests/{name}.s": list(edits)}


WRONG = [
    ("small whole numbers alone", {"tests/numbers.s": PRODUCT},
     {"ties_away": 2, "relu_hides_nan": 2, "hidden_1": 3, "hidden_2": 3},
     ["alive: a sum in the middle between two numbers goes up, not to the even one (all of your 12 tests pass",
      "alive: a fault of the arithmetic",
      "it breaks the promise \"sums\" of the handout's table"]),
    ("a sum worked out wrong", test("chain", (".expect y 3 ", ".expect y 4 ")),
     {"no_false_alarm": 8, "always_feedback": 2, "hazard_a_cycle_early": 2},
     ["a false alarm of tests/chain.s: y[0][0] is expected to be 4 (0x40800000), came 3 ",
      "1 of 12 tests fail on the RTL without a fault"]),
    ("cycles that nobody expects", test("queue", (".expect cycles 58\n", "")), {"queue_a_word_short": 2},
     ["a queue is full with 15 instructions"]),
    ("every FIFO place used once", test("remainder", ("weight_load address=w pitch=8 rows=4 columns=4\n" * 4,
                                                      "weight_load address=w pitch=8 rows=4 columns=4\n"),
                                        ("matmul      count=4 rows_left=1 columns_left=4\n" * 3, "")),
     {"rows_below_the_tile": 2, "hidden_6": 3}, ["rows beyond a tile's multiply by what lies in the FIFO"]),
    ("zeros around the picture", test("convolution", (".values x 24 25 26 27", ".values x 0 0 0 0"),
                                      (".values x 28 29 30", ".values x 0 0 0")),
     {"a_row_below_the_input": 2}, ["the row below the input is read, not zero"]),
    ("a token forgotten", test("output", ("matmul         wait=load", "matmul        ")),
     {"no_false_alarm": 8, "bias_is_the_multiplier": 2, "hidden_5": 3},
     ["a false alarm of tests/output.s", "no token makes it wait for that"]),
    ("a comma", test("pool", (".expect y 4 ", ".expect y 4, ")), {"no_false_alarm": 8},
     ["tests/pool.s, line", "'4,' is no value of f32"]),
    ("a long way", test("product", ("halt\n", "load address=x units=1 lines=2000 buffer_row=100 log2_group=2\nhalt\n")),
     {"economy": 4}, ["cycles together, 1200 are allowed"]),
    ("nothing expected", {f"tests/{name}.s": "halt\n" for name in TESTS}, ALL,
     ["a false alarm of tests/chain.s: nothing is expected: add lines .expect NAME VALUES"]),
    ("other predictions than committed", {"answers.json": [('"exact_bits": 24', '"exact_bits": 23')]},
     {"cycles_16": 5, "example_finds": 5, "exact_bits": 5, "hazard_positions": 5},
     ["other predictions than those committed"]),
    ("a wrong answer", {"answers.json": [('"whose_values": "b"', '"whose_values": "a"')]}, {"whose_values": 5},
     ["out of the very RTL that it tests"]),
]
