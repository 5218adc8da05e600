"""Grader of lab 10: normalisations as programs for the vector unit. They run on the twin, and the grader computes the
expected bits."""
# SPDX-License-Identifier: Apache-2.0
import math
import struct

from grading import Refused, f32, f32_bits

LANES, ROWS, TILE = 4, 64, 32  # values per row, rows of x, rows of the tile of `rows`
EPSILON = f32(1e-5)
NEAR = 1e-5  # of values that only rounding separates
APPLY, STATISTICS, ROWS_STRAIGHT, ROWS_PACKED = 460, 440, 1160, 880  # cycles
MACHINE = "mmu4-vector"


def fma(a, b, c):
    """a b + c, rounded once. The product is exact in double precision, and rounding the sum to odd makes the second
    rounding harmless."""
    product = a * b
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)
    if error and struct.pack("<d", total)[0] % 2 == 0:
        total = math.nextafter(total, math.copysign(math.inf, error))
    return f32(total)


def positive(value):
    """A ReLU without -0."""
    return value if value > 0 else 0.0


def halved(values):
    """Their sum: the second half is added to the first one until one number is left."""
    while len(values) > 1:
        half = len(values) // 2
        values = [f32(a + b) for a, b in zip(values[:half], values[half:])]
    return values[0]


def columns(x):
    return [x[c::LANES] for c in range(LANES)]


def apply_reference(inputs):
    mean, inverse, scale, bias = (inputs["p"][r * LANES:(r + 1) * LANES] for r in range(4))
    factor = [f32(s * i) for s, i in zip(scale, inverse)]
    return {"y": [positive(fma(f32(value - mean[i % LANES]), factor[i % LANES], bias[i % LANES]))
                  for i, value in enumerate(inputs["x"])]}


def statistics_reference(inputs):
    means = [f32(halved(column) / ROWS) for column in columns(inputs["x"])]
    squares = [[f32(f32(value - mean) ** 2) for value in column] for column, mean in zip(columns(inputs["x"]), means)]
    return {"mean": means, "variance": [f32(halved(column) / ROWS) for column in squares]}


def inverse_root(v):
    """The handout's approximation of 1 / sqrt(v)."""
    r = struct.unpack("<f", struct.pack("<I", 0x5F3759DF - (f32_bits(v) >> 1)))[0]
    for _ in range(3):
        r = f32(r * fma(f32(-0.5 * v), f32(r * r), 1.5))
    return r


def rows_reference(inputs):
    z = []
    for first in range(0, len(inputs["x"]), LANES):
        row = inputs["x"][first:first + LANES]
        mean = f32(halved(row) / LANES)
        differences = [f32(value - mean) for value in row]
        variance = f32(halved([f32(d * d) for d in differences]) / LANES)
        factor = inverse_root(f32(variance + EPSILON))
        z += [f32(d * factor) for d in differences]
    return {"z": z}


def small(count, step, modulus, scale=0.25):
    """Numbers of numbers.py in the handout."""
    return [(i * step % modulus - modulus // 2) * scale for i in range(count)]


KNOWN = {"x": small(ROWS * LANES, 7, 23),
         "p": small(LANES, 3, 7) + [0.25, 0.5, 0.75, 1.0] + small(LANES, 5, 9, 0.5) + small(LANES, 2, 5),
         "tile": small(TILE * LANES, 5, 19)}


def drawn(hidden):
    return {"x": hidden.floats(ROWS * LANES, 3),
            "p": [hidden.uniform(-2, 2) if i // LANES != 1 else hidden.uniform(0.25, 2) for i in range(4 * LANES)],
            "tile": hidden.floats(TILE * LANES, 3)}


class Task:
    """A program to write: its inputs by name and where their numbers come from, and the expected outputs."""

    def __init__(self, name, sources, outputs, reference):
        self.name, self.sources, self.outputs, self.reference = name, sources, outputs, reference
        self.file = f"{name}.s"

    def run(self, bench, numbers):
        """Cycles and outputs on these numbers. Raises Refused when the program does not run."""
        words = ["mmu", "run", self.file, "--machine", MACHINE]
        for name, source in self.sources.items():
            bench.put_array(f"{name}.npy", [len(numbers[source]) // LANES, LANES], numbers[source])
            words += ["--dram", f"{name}={name}.npy"]
        for name in self.outputs:
            bench.remove(f"{name}_out.npy")
            words += ["--out", f"{name}={name}_out.npy"]
        counters = bench.results(*words)[0]["counters"]
        return counters["cycles"], {name: bench.array(f"{name}_out.npy") for name in self.outputs}

    def expected(self, numbers):
        return self.reference({name: numbers[source] for name, source in self.sources.items()})


TASKS = {task.name: task for task in (
    Task("apply", {"p": "p", "x": "x"}, ["y"], apply_reference),
    Task("statistics", {"x": "x"}, ["mean", "variance"], statistics_reference),
    Task("rows", {"x": "tile"}, ["z"], rows_reference))}


class Outcome:
    """A program on the known and the hidden numbers: `problem` if it did not run, otherwise the first wrong bits and
    wrong values of each output."""

    def __init__(self, name, submission, bench, drawn_numbers):
        task = TASKS[name]
        self.problem, self.bits, self.values, self.cycles = "", {}, {}, 0
        try:
            bench.put(task.file, submission.text(task.file))
            for words, numbers in (("the numbers of numbers.py", KNOWN), ("other numbers", drawn_numbers)):
                self.cycles, arrays = task.run(bench, numbers)
                for output, expected in task.expected(numbers).items():
                    wrong, far = differences(output, arrays[output], expected)
                    self.note(self.bits, output, words, wrong)
                    self.note(self.values, output, words, far)
        except Refused as refused:
            self.problem = str(refused)

    @staticmethod
    def note(problems, output, words, problem):
        problems[output] = problems.get(output) or (problem and f"{words}: {problem}")

    def bits_problem(self, output):
        return "it does not run: see above" if self.problem else self.bits[output]

    def right(self):
        return not self.problem and not any(self.bits.values())

    def cycles_problem(self, most, hint):
        if not self.right():
            return "counts when the bits are right"
        return "" if self.cycles <= most else f"{self.cycles:g} cycles, {most} are allowed; {hint}"


def differences(name, array, expected):
    """Texts about the first element with wrong bits, and about the first one that is not even near. Empty: none."""
    if array.spec != f"f32[{len(expected) // LANES}, {LANES}]":
        wrong = f"{name} should be f32[{len(expected) // LANES}, {LANES}], and is {array.spec}"
        return wrong, wrong
    wrong = far = ""
    for i, (got, right) in enumerate(zip(array.floats(), expected)):
        if f32_bits(got) == f32_bits(right):
            continue
        near = abs(got - right) <= NEAR * max(1.0, abs(right))
        words = (f"{name}[{i // LANES}][{i % LANES}] should be {right:g} (0x{f32_bits(right):08x}), and is {got:g} "
                 f"(0x{f32_bits(got):08x})")
        wrong = wrong or words + (", which is nearly right: are the operations and their order those of the handout?"
                                  if near else "")
        far = far or ("" if near else words)
    return wrong, far


def grade(submission, bench, report, hidden):
    numbers = drawn(hidden)
    apply, statistics, rows = (Outcome(name, submission, bench, numbers) for name in TASKS)

    report.exact("apply: values", 8, apply.problem or apply.values["y"])
    report.exact("apply: bits", 6, apply.bits_problem("y"))
    report.exact("apply: cycles", 4, apply.cycles_problem(APPLY, "how many operations and loads are there?"))
    report.exact("statistics: mean", 6, statistics.problem or statistics.bits["mean"])
    report.exact("statistics: variance", 10, statistics.bits_problem("variance"))
    report.exact("statistics: cycles", 6, statistics.cycles_problem(STATISTICS, "how many rows has each operation?"))
    report.exact("rows: values", 6, rows.problem or rows.values["z"])
    report.exact("rows: bits", 8, rows.bits_problem("z"))
    report.exact("rows: cycles", 3, rows.cycles_problem(ROWS_STRAIGHT, "how many rows has each operation?"))
    report.exact("rows: packed", 3, rows.cycles_problem(ROWS_PACKED, "in how many lanes is the same number?"))
    outcomes = apply, statistics, rows
    if all(each.right() for each in outcomes):
        report.standing("cycles of all programs", sum(each.cycles for each in outcomes))


def cycles_of_operation(bench, operation, count):
    """Cycles of a vector operation on the twin."""
    bench.put("operation.s", f".output y address=0 type=f32 shape=1x{LANES}\n"
                             f"vector_op operation=fill destination=0 step=1 constant=1 count={count}\n"
                             f"vector_op operation={operation} destination=0 step=1 a_step=1 b_step=1 c_step=1 "
                             f"count={count}\n"
                             f"vector_store address=y pitch=16 row=0 count=1 columns={LANES}\nhalt\n")
    instruction = bench.results("mmu", "run", "operation.s", "--machine", MACHINE)[0]["instructions"][1]
    return instruction["end"] - instruction["start"]


def predictions(bench):
    return [("add_64", 5, cycles_of_operation(bench, "add", ROWS), 0),
            ("adds_of_one", 5, ROWS * cycles_of_operation(bench, "add", 1), 0),
            ("fma_64", 5, cycles_of_operation(bench, "fma", ROWS), 0),
            ("halvings", 5, int(math.log2(ROWS)), 0)]
