"""Grader of lab 1: a student's array in SystemVerilog, between memories that count. Their log states the cycle of each
read and of each result. All exact points depend on it."""
# SPDX-License-Identifier: Apache-2.0
from rtl import build_and_run, log_lines

TOP = """module lab_bench (input logic clk_i, input logic rst_i, output logic done_o);
  logic [{last}:0] done;
  assign done_o = &done;
{cases}endmodule
"""
CASE = ('  lab_case #(.Size({size}), .Rows({rows}), .Most({most}), .Name("{name}")) u_{name} '
        "(.clk_i, .rst_i, .done_o(done[{number}]));\n")


class Product:
    """x and w, row by row, for an array of size x size cells."""

    def __init__(self, name, size, x, w):
        self.name, self.size, self.rows, self.x, self.w = name, size, len(x) // size, x, w

    def x_at(self, m, k):
        return self.x[m * self.size + k]

    def w_at(self, k, c):
        return self.w[k * self.size + c]

    def y(self, m, c):
        return sum(self.x_at(m, k) * self.w_at(k, c) for k in range(self.size))

    def results(self):
        """(row, column) of each result."""
        return [(m, c) for m in range(self.rows) for c in range(self.size)]

    def __str__(self):
        ending = "" if self.rows == 1 else "s"
        return f"product {self.name} (array {self.size} x {self.size}, {self.rows} row{ending} of x)"


class Log:
    """Rows of x and w in the order of the requests, and the cycle and value of each result by (row, column)."""

    def __init__(self, product, text):
        self.reads, self.cycle, self.value = {"x": [], "w": []}, {}, {}
        self.shown = [0] * product.size  # results of each column
        for kind, cycle, place, value in log_lines(text):
            if kind in self.reads:
                self.reads[kind].append(place)
            elif kind == "y" and 0 <= place < product.size:
                at = (self.shown[place], place)
                self.cycle[at], self.value[at] = cycle, value
                self.shown[place] += 1
        self.complete = min(self.shown) >= product.rows
        self.cycles = max(self.cycle.values(), default=-1) + 1


def first_product():
    return Product("a", 4, [4 * m + k - 6 for m in range(4) for k in range(4)],
                   [3 * k - 2 * c + 1 for k in range(4) for c in range(4)])


def hidden_product(name, size, rows, hidden):
    x = [hidden.below(256) - 128 for _ in range(rows * size)]
    w = [hidden.below(256) - 128 for _ in range(size * size)]
    x[0] = w[0] = -128  # the extremes of the range: their product needs all bits
    return Product(name, size, x, w)


def products(hidden):
    more_rows = 9 + hidden.below(16)
    size = (3, 5, 6, 7)[hidden.below(4)]
    few_rows = 1 + hidden.below(3)
    return [first_product(), hidden_product("b", 4, more_rows, hidden), hidden_product("c", size, few_rows, hidden)]


def memory_text(numbers):
    return "".join(f"{number & 0xFF:02x}\n" for number in numbers)


def top_module(cases):
    """The module above all cases."""
    text = "".join(CASE.format(size=each.size, rows=each.rows, most=100 + 20 * (each.rows + each.size), name=each.name,
                               number=number) for number, each in enumerate(cases))
    return TOP.format(last=len(cases) - 1, cases=text)


def signed(number):
    return number


def unsigned(number):
    return number & 0xFF


def mistaken(product, m, c, x, w, skewed=True):
    """y[m][c] of an array that reads x and w in this way. Without skew, x[m + k][k] meets w[k][c]."""
    total = 0
    for k in range(product.size):
        row = m if skewed else m + k
        if row >= product.rows:
            return product.y(m, c)  # there is no such x
        total += x(product.x_at(row, k)) * w(product.w_at(k, c))
    return total


def likely_cause(product, log, c):
    """Text about the mistake that explains the values of column c, to follow them in a message. Empty: none is known."""
    def early(m):
        return log.value[m, c] if m == 0 else product.y(m - 1, c)

    def late(m):
        return log.value[m, c] if m + 1 == product.rows else product.y(m + 1, c)

    mistakes = [
        ("y_valid_o begins a cycle too early: what should be y[0] comes second", early),
        ("y_valid_o begins a cycle too late: what should be y[1] comes first", late),
        ("it is the product of an x without sign", lambda m: mistaken(product, m, c, unsigned, signed)),
        ("it is the product of weights without sign", lambda m: mistaken(product, m, c, signed, unsigned)),
        ("it is the product of an x and weights without sign", lambda m: mistaken(product, m, c, unsigned, unsigned)),
    ]
    for cause, value in mistakes:
        if product.rows > 1 and all(log.value[m, c] == value(m) for m in range(product.rows)):
            return f"; {cause}"
    unskewed = mistaken(product, 0, c, signed, signed, skewed=False)
    if unskewed != product.y(0, c) and log.value[0, c] == unskewed:
        return "; it is x[0][0] w[0] + x[1][1] w[1] + ..., as if each x entered its row without skew"
    return ""


def wrong_bits(product, log):
    if not log.complete:
        shown = ", ".join(map(str, log.shown))
        return (f"{product}: each column should show {product.rows} results, they showed {shown} "
                "before time was up")
    for m, c in product.results():
        if log.value[m, c] != product.y(m, c):
            return (f"{product}: y[{m}][{c}] should be {product.y(m, c)}, and column {c} showed {log.value[m, c]} in "
                    f"cycle {log.cycle[m, c]}{likely_cause(product, log, c)}")
    return ""


def wrong_reads(product, log):
    """Each row of w and of x is to be read once."""
    for memory, rows in (("w", product.size), ("x", product.rows)):
        reads = log.reads[memory]
        if len(reads) != rows:
            return (f"{product}: {memory} has {rows} rows of {product.size} numbers, and {len(reads)} were read "
                    f"({len(reads) * product.size} reads instead of {rows * product.size})")
        for row in range(rows):
            if reads.count(row) != 1:
                return f"{product}: row {row} of {memory} was read {reads.count(row)} times, once is enough"
    return ""


def wrong_wave(product, log):
    for m, c in product.results():
        if c == 0:
            continue
        before, now = log.cycle[m, c - 1], log.cycle[m, c]
        if now != before + 1:
            return (f"{product}: y[{m}][{c - 1}] came in cycle {before} and y[{m}][{c}] in cycle {now}; x goes "
                    f"through one column in a cycle, so it should be {before + 1}")
    return ""


def too_slow(log, product, allowed, formula):
    if log.cycles <= allowed:
        return ""
    return (f"{product}: the last y came in cycle {log.cycles - 1}, so it took {log.cycles} cycles; "
            f"{formula} = {allowed} are allowed")


def slower_than_a_wave(product, log):
    return too_slow(log, product, product.rows + 3 * product.size, "M + 3 S")


def without_overlap(product, log):
    return too_slow(log, product, product.rows + 2 * product.size + 1, "M + 2 S + 1")


def first_problem(cases, logs, problem_of):
    """The first problem of any product. One that is not complete is a problem."""
    for product, log in zip(cases, logs):
        problem = problem_of(product, log) if log.complete else "counts when all results come: see above"
        if problem:
            return problem
    return ""


def run(submission, bench, report, hidden, cases):
    """Builds and runs. Returns the logs and the problem."""
    for product in cases:
        bench.put(f"{product.name}.x", memory_text(product.x))
        bench.put(f"{product.name}.w", memory_text(product.w))
    bench.put("array.sv", submission.text("array.sv"))
    bench.put("array_bench.sv", bench.lab_text("benches/array_bench.sv"))
    bench.put("lab_bench.sv", top_module(cases))
    problem = build_and_run(bench, ["array.sv", "array_bench.sv", "lab_bench.sv"], hidden.seed, report)
    if problem:
        return [], problem
    return [Log(product, bench.text(f"{product.name}.log")) for product in cases], ""


def grade(submission, bench, report, hidden):
    cases = products(hidden)
    logs, broken = run(submission, bench, report, hidden, cases)
    items = [
        ("bits_4x4", 15, lambda: wrong_bits(cases[0], logs[0])),
        ("bits_hidden", 15, lambda: wrong_bits(cases[1], logs[1]) or wrong_bits(cases[2], logs[2])),
        ("reads", 10, lambda: first_problem(cases, logs, wrong_reads)),
        ("wave", 10, lambda: first_problem(cases, logs, wrong_wave)),
        ("cycles", 5, lambda: first_problem(cases, logs, slower_than_a_wave)),
        ("overlap", 5, lambda: first_problem(cases, logs, without_overlap)),
    ]
    for name, points, problem in items:
        report.exact(name, points, broken or problem())
        broken = broken and "nothing ran: see above"


def predictions(bench):
    size, rows = 4, 16
    return [("reads_without", 5, 2 * rows * size * size, 0),
            ("reads_with", 5, size * size + rows * size, 0),
            ("cycles", 5, rows + 3 * size, 0),
            ("macs_per_read", 5, 256, 0)]
