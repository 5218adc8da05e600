"""Typical mistakes of lab 5: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
import pathlib

TOOLS = ("verilator", "make", "g++", "yosys")
CLOCK = {"depth_50": 10, "depth_34": 10, "time_3700": 10, "time_2500": 10}
ALL = {"bits": 20, **CLOCK}
SOLUTION = (pathlib.Path(__file__).parent / "solutions/5-clock/pe.sv").read_text(encoding="utf-8")
PORTS = SOLUTION[:SOLUTION.index("\n  logic signed [15:0] product_q;")]
ONE = PORTS + "  always_ff @(posedge clk_i) sum_o <= sum_i + 32'(x_i) * 32'(w_q);\nendmodule\n"
TWO = PORTS + """\
  logic signed [15:0] product_q;
  logic signed [31:0] sum_q;
  always_ff @(posedge clk_i) begin
    product_q <= x_i * w_q;
    sum_q <= sum_i;
    sum_o <= sum_q + 32'(product_q);
  end
endmodule
"""
FOUR = (SOLUTION.replace("    product_q <= x_i * w_q;\n", """\
    lower_q <= 13'(x_i * $signed({1'b0, w_q[3:0]}));
    upper_q <= 13'(x_i * $signed(w_q[7:4]));
    product_q <= (16'(upper_q) <<< 4) + 16'(lower_q);
    sum_first_q <= sum_i;
""").replace("sum_q <= sum_i;\n    low_q", "sum_q <= sum_first_q;\n    low_q")
        .replace("  logic [31:0] sum_q;", "  logic signed [12:0] lower_q, upper_q;\n  logic [31:0] sum_q, sum_first_q;"))


def cell(*edits):
    return {"pe.sv": list(edits)}


WRONG = [
    ("one stage", {"pe.sv": ONE, "latency.txt": "1\n"}, CLOCK,
     ["gates in a cycle: ", "50 are allowed", "gates times 70 cycles: "]),
    ("two stages", {"pe.sv": TWO, "latency.txt": "2\n"}, {"depth_34": 10, "time_2500": 10}, ["gates times 74 cycles: "]),
    ("a stage that brings nothing", {"pe.sv": FOUR, "latency.txt": "4\n"}, {"time_2500": 10}, ["gates times 82 cycles: "]),
    ("the carry forgotten", cell((" + 16'(low_q[16])", "")), ALL, ["y[", "] should be ", "counts when the bits are right"]),
    ("the product's sign forgotten", cell(("{16{sign_q}}", "16'd0")), ALL, ["] should be "]),
    ("the sum does not wait", cell(("17'(sum_q[15:0])", "17'(sum_i[15:0])")), ALL, ["y[0] should be "]),
    ("another latency than said", {"latency.txt": "2\n"}, ALL, ["y[0] should be "]),
    ("no latency", {"latency.txt": "three\n"}, ALL, ["latency.txt should hold the number of cycles"]),
    ("no end", cell(("endmodule", "")), ALL, ["Verilator ended with status 1"]),
    ("a wrong answer", {"answers.json": [('"when_not": "a"', '"when_not": "d"')]}, {"when_not": 5},
     ["look at your four predictions"]),
]
