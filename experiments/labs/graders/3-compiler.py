"""Grader of lab 3: a product larger than the array, as a program that the student wrote. It runs on the twin, and the
grader computes the expected values."""
# SPDX-License-Identifier: Apache-2.0
from grading import Refused, f32, f32_bits

ROWS, INNER, COLUMNS = 16, 8, 8  # x is ROWS x INNER
SIDE = 4  # of the array
STRAIGHT, EARLY, LEAN = 171, 162, 152  # cycles
WEIGHT_BYTES = 2 * INNER * COLUMNS
Y = f"f32[{ROWS}, {COLUMNS}]"
RUN = ("mmu", "run", "product.s", "--machine", "mmu4", "--dram", "x=x.npy", "--dram", "w=w.npy", "--out", "y=y.npy")


class Product:
    """x, w and `name`, with y = ReLU(x w), each element one chain of multiply-adds in ascending k. `rounding` bounds the
    difference that another order of additions makes."""

    def __init__(self, name, x, w):
        self.name, self.x, self.w, self.y, self.rounding = name, x, w, [], []
        for m in range(ROWS):
            for c in range(COLUMNS):
                # Operands have 8 significant bits, so the sum of a product and a float32 is exact in double precision.
                products = [x[m * INNER + k] * w[k * COLUMNS + c] for k in range(INNER)]
                total = 0.0
                for product in products:
                    total = f32(total + product)
                self.y.append(max(total, 0.0))
                self.rounding.append(sum(map(abs, products)) * INNER * 2**-23)


def known():
    """The numbers that numbers.py of the handout writes."""
    return Product("x and w of numbers.py", [i * 5 % 17 - 8 for i in range(ROWS * INNER)],
                   [i * 3 % 11 - 5 for i in range(INNER * COLUMNS)])


def drawn(hidden):
    """Numbers of very different sizes, so that another order of additions gives other bits."""
    def number():
        significand = hidden.below(511) - 255
        return significand * 2.0 ** (hidden.below(16) - 12)
    x = [number() for _ in range(ROWS * INNER)]
    return Product("other x and w", x, [number() for _ in range(INNER * COLUMNS)])


class Run:
    """A run of the program: its `counters` and `y`, or the `problem`."""

    def __init__(self, submission, bench, product):
        bench.put("product.s", submission.text("product.s"))
        bench.put_array("x.npy", [ROWS, INNER], product.x)
        bench.put_array("w.npy", [INNER, COLUMNS], product.w)
        bench.remove("y.npy")
        self.problem, self.counters, self.y = "", {}, None
        try:
            self.counters = bench.results(*RUN)[0]["counters"]
        except Refused as refused:
            self.problem = str(refused)
            return
        self.y = bench.array("y.npy")

    def shape_problem(self):
        return f"y should be {Y}, and is {self.y.spec}"

    def incomplete(self):
        """Why the program does not write all of y. Empty: it does."""
        return self.problem or ("" if self.y.spec == Y else self.shape_problem())

    def wrong_bits(self, product):
        """The first wrong element. A y with fewer columns is compared, too, so that students can try half a program."""
        if self.problem:
            return self.problem
        shape = self.y.shape
        if not self.y.spec.startswith("f32[") or len(shape) != 2 or shape[0] != ROWS or shape[1] > COLUMNS:
            return self.shape_problem()
        for i, got in enumerate(self.y.floats()):
            row, column = divmod(i, shape[1])
            at = row * COLUMNS + column
            if f32_bits(got) != f32_bits(product.y[at]):
                return f"{product.name}: y[{row}][{column}] " + difference(got, product.y[at], product.rounding[at])
        if shape[1] == COLUMNS:
            return ""
        return f"{product.name}: y has {shape[1]} columns, which are right, and should have {COLUMNS}"


def difference(got, expected, rounding):
    nearly = ", which is nearly right: are the additions in the order k = 0, 1, ..., 7?"
    return (f"should be {expected:g} (0x{f32_bits(expected):08x}), and is {got:g} (0x{f32_bits(got):08x})"
            f"{nearly if abs(got - expected) <= rounding else ''}")


def grade(submission, bench, report, hidden):
    products = known(), drawn(hidden)
    first, second = (Run(submission, bench, product) for product in products)

    def later(problem):
        return "it does not run: see above" if first.problem else problem

    report.exact("runs", 10, first.incomplete())
    bits = first.wrong_bits(products[0])
    report.exact("bits", 15, later(bits))
    report.exact("bits_hidden", 15, later(second.wrong_bits(products[1])))

    def judge(name, counter, allowed, words):
        got = first.counters.get(counter, 0)
        problem = "" if got <= allowed else f"{words}: {got:g}, {allowed:g} are allowed"
        report.exact(name, 5, later("counts when the bits are right" if bits else problem))

    judge("weights_once", "dram_weights_bytes", WEIGHT_BYTES, "bytes of weights that were read (dram_weights_bytes)")
    for allowed in (STRAIGHT, EARLY, LEAN):
        judge(f"cycles_{allowed}", "cycles", allowed, "cycles")
    if not bits:
        report.standing("cycles", first.counters["cycles"])


def predictions(bench):
    """Counts of this product, and a matmul's time by the manual."""
    tiles = INNER // SIDE * (COLUMNS // SIDE)
    return [("tiles", 5, tiles, 0),
            ("macs", 5, ROWS * INNER * COLUMNS, 0),
            ("issue_cycles", 5, tiles * ROWS, 0),
            ("matmul_cycles", 5, ROWS + SIDE + SIDE + 2, 0)]
