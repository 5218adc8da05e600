"""Grader of lab 5: a cell that is cut into stages. Yosys counts the gates of two inputs on the longest path between
registers. The cycles are those of a product on a 4 x 4 array."""
# SPDX-License-Identifier: Apache-2.0
import re

from grading import BUILD
from rtl import build_and_run, log_lines

CELLS, COLUMNS, ROWS, FEW = 4, 4, 64, 4  # the array, rows of x, and few rows
MOST_STAGES = 8
TWO_STAGES, SPLIT_CARRY = 50, 34  # gates
FASTER, FASTEST = 3700, 2500  # gates times cycles
DEPTH = ("read_verilog -sv pe.sv; hierarchy -check -top lab_pe; proc; flatten; opt -fast; wreduce; peepopt; opt_clean; "
         "alumacc; share; opt -full; techmap; opt -fast; opt_clean; abc -g AND,OR,XOR,MUX; tee -q -o depth ltp -noff")


def cycles_of(rows, latency):
    """Cycles with working cells in the array, for `rows` rows of x."""
    return rows + CELLS * latency + COLUMNS - 2


class Numbers:
    """Numbers for a column of cells: x row by row and w of 8 bits, and the sums that enter the first cell. Some sums lie
    close to multiples of 65536, where carries are long."""

    def __init__(self, hidden):
        def small():
            return hidden.below(256) - 128
        self.x = [small() for _ in range(ROWS * CELLS)]
        self.w = [small() | 1 for _ in range(CELLS)]
        self.sums = []
        for row in range(ROWS):
            near, bits = small() & 0xFFFFFFFF, hidden.bits()
            self.sums.append((near, (bits & 0xFFFF0000) + near & 0xFFFFFFFF, bits, bits)[row % 4])

    def y(self, row):
        total = self.sums[row] + sum(self.x[row * CELLS + k] * self.w[k] for k in range(CELLS))
        return (total + 2**31) % 2**32 - 2**31


def memory_text(numbers, mask):
    return "".join(f"{number & mask:x}\n" for number in numbers)


def latency_of(submission):
    """The stages that latency.txt states. 0: it states none."""
    if "latency.txt" not in submission.names():
        return 0
    stated = re.match(r"\s*(\d{1,3})", submission.text("latency.txt"))
    return int(stated[1]) if stated and 1 <= int(stated[1]) <= MOST_STAGES else 0


def wrong_bits(given, log):
    seen = 0
    for _, cycle, row, value in log_lines(log):
        if row != seen or row >= ROWS:
            break
        if value != given.y(row):
            return (f"y[{row}] should be {given.y(row)} (0x{given.y(row) & 0xFFFFFFFF:08x}), and in cycle {cycle} "
                    f"it is {value} (0x{value & 0xFFFFFFFF:08x})")
        seen += 1
    return "" if seen == ROWS else "the log of the simulation is damaged"


def simulate(submission, bench, report, hidden, latency):
    """Builds the column and runs it."""
    given = Numbers(hidden)
    bench.put("pe.sv", submission.text("pe.sv"))
    bench.put("a.x", memory_text(given.x, 0xFF))
    bench.put("a.w", memory_text(given.w, 0xFF))
    bench.put("a.s", memory_text(given.sums, 0xFFFFFFFF))
    text = bench.lab_text("benches/pe_bench.sv")
    for name, value in (("Rows", ROWS), ("Latency", latency)):
        text = re.sub(rf"parameter int {name} = \d+", f"parameter int {name} = {value}", text)
    bench.put("pe_bench.sv", text)
    return build_and_run(bench, ["pe.sv", "pe_bench.sv"], hidden.seed, report) or wrong_bits(given, bench.text("a.log"))


def depth_of(bench):
    """The longest path between registers, or from a port, in gates, and the error message of Yosys."""
    bench.remove("depth")
    ending = bench.run("yosys", "-q", "-p", DEPTH, **BUILD)
    if not ending.good:
        return 0, f"Yosys: {ending.why()}"
    length = re.search(r"length=(\d{1,6})", bench.text("depth"))
    return (int(length[1]), "") if length else (0, "Yosys finds no way between registers in lab_pe")


def grade(submission, bench, report, hidden):
    latency = latency_of(submission)
    problem = (simulate(submission, bench, report, hidden, latency) if latency else
               "latency.txt should hold the number of cycles that a sum takes through your cell, "
               f"1 to {MOST_STAGES}")
    report.exact("bits", 20, problem)
    gates, broken = (0, "counts when the bits are right") if problem else depth_of(bench)
    cycles = cycles_of(ROWS, latency)

    def judge(name, got, allowed, words):
        report.exact(name, 10, broken or (f"{words}: {got}, {allowed} are allowed" if got > allowed else ""))

    for allowed in (TWO_STAGES, SPLIT_CARRY):
        judge(f"depth_{allowed}", gates, allowed, "gates in a cycle")
    for allowed in (FASTER, FASTEST):
        judge(f"time_{allowed}", gates * cycles, allowed, f"{gates} gates times {cycles} cycles")
    if not broken:
        report.standing("gates times cycles", gates * cycles)


def predictions(bench):
    return [(name, 5, cycles_of(rows, latency), 0) for name, rows, latency in (
        ("cycles_1", ROWS, 1), ("cycles_3", ROWS, 3), ("few_rows_1", FEW, 1), ("few_rows_3", FEW, 3))]
