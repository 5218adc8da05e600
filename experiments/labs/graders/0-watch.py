"""Grader of lab 0: the student's laws are compared with every multiply-add of hidden products on a 4 x 4 array."""
# SPDX-License-Identifier: Apache-2.0
import json

from grading import CannotGrade, Refused, is_whole

PROGRAM = """\
.input  x address=0  type=bf16 shape={M}x{K}
.input  w address={w} type=bf16 shape={K}x{N}
.output y address={y} type=f32  shape={M}x{N}
load signal=compute address=x pitch={x_pitch} buffer_pitch={K} units={K} lines={M} log2_group=0
set_stream in_height=1 in_width={M} out_height=1 out_width={M} stride_x=1 step_x={K}
set_taps channels={K} kernel_width=1 log2_group=0
weight_load address=w pitch={w_pitch} rows={K} columns={N}
matmul wait=load signal=store count={M} rows_left=1 columns_left={M}
set_output out_height=1 out_width={M} step_x={y_pitch}
store wait=compute address=y count={M} columns={N} rows_left=1 columns_left={M}
halt
"""


class Product:
    """A product of M x K by K x N, and every multiply-add of the array for it."""

    def __init__(self, bench, x, w, sizes):
        self.x, self.w, (self.M, self.K, self.N) = x, w, sizes
        self.steps = self.watch(bench)
        self.cycles = 1 + max(step["cycle"] for step in self.steps)

    def x_at(self, m, k):
        return self.x[m * self.K + k]

    def w_at(self, k, n):
        return self.w[k * self.N + n]

    def __str__(self):
        return f"x {self.M} x {self.K}, w {self.K} x {self.N}"

    def watch(self, bench):
        """The steps on mmu4, with cycles from the first one on."""
        w = (2 * self.M * self.K + 63) // 64 * 64
        bench.put("product.s", PROGRAM.format(
            M=self.M, K=self.K, N=self.N, w=w, y=w + 64, x_pitch=2 * self.K, w_pitch=2 * self.N, y_pitch=4 * self.N))
        bench.put_array("x.npy", [self.M, self.K], self.x)
        bench.put_array("w.npy", [self.K, self.N], self.w)
        bench.remove("cells.json")
        ending = bench.run("triptych", "mmu", "run", "product.s", "--machine", "mmu4", "--dram", "x=x.npy",
                           "--dram", "w=w.npy", "--per-pe", "cells.json", "--json")
        if not ending.good:
            raise CannotGrade(f"the array does not run: {ending.why()}")
        steps = json.loads(bench.text("cells.json"))["steps"]
        first = steps[0]["cycle"]
        return [{**step, "cycle": step["cycle"] - first, "m": step["slot"]} for step in steps]


def hidden_product(bench, hidden, inner, columns):
    """Numbers that differ in x and in w, so that each tells its place, and are positive, so that a sum tells its
    terms."""
    rows = 1 + hidden.below(9)
    x = hidden.shuffled(range(1, rows * inner + 1))
    return Product(bench, x, hidden.shuffled(range(1, inner * columns + 1)), (rows, inner, columns))


class Law:
    """One law of laws.json: a sum of whole multiples of named quantities."""

    def __init__(self, laws, name, quantities):
        law = laws.get(name)
        self.factors = law if isinstance(law, dict) else {}
        for quantity in [*quantities, "constant"]:
            value = self.factors.get(quantity)
            if not is_whole(value) or abs(value) > 1000:
                raise Refused(f'laws.json: "{name}" has no whole number for "{quantity}" yet')

    def __call__(self, **quantities):
        return self.factors["constant"] + sum(self.factors[name] * value for name, value in quantities.items())


def first_wrong(products, problem_of):
    """The first problem of all steps of all products."""
    for product in products:
        for step in product.steps:
            problem = problem_of(product, step)
            if problem:
                return f"{product}: cell ({step['row']}, {step['column']}) {problem}"
    return ""


def number(value):
    return f"{value:.9g}"


def wrong_index(products, law, name, is_right):
    def problem_of(product, step):
        index = law(row=step["row"], column=step["column"])
        if is_right(product, step, index):
            return ""
        return (f"multiplies {number(step['activation'])} of x by {number(step['weight'])} of w in cycle "
                f"{step['cycle']}; with {name} = {index} it would not")
    return first_wrong(products, problem_of)


def wrong_k(products, law):
    return wrong_index(products, law, "k", lambda product, step, k:
                       0 <= k < product.K and product.x_at(step["m"], k) == step["activation"])


def wrong_n(products, law):
    return wrong_index(products, law, "n", lambda product, step, n: 0 <= n < product.N and any(
        product.w_at(k, n) == step["weight"] for k in range(product.K)))


def wrong_cycle(products, law):
    def problem_of(_, step):
        cycle = law(m=step["m"], row=step["row"], column=step["column"])
        if cycle == step["cycle"]:
            return ""
        return f"works on row {step['m']} of x in cycle {step['cycle']}, your law says {cycle}"
    return first_wrong(products, problem_of)


def wrong_terms(products, law):
    def problem_of(product, step):
        terms = law(row=step["row"], column=step["column"])
        if 0 <= terms <= product.K and step["sum_out"] == sum(
                product.x_at(step["m"], k) * product.w_at(k, step["column"]) for k in range(terms)):
            return ""
        return (f"hands down {number(step['sum_out'])} in cycle {step['cycle']}, which is not the sum of {terms} "
                "products")
    return first_wrong(products, problem_of)


def wrong_cycles(products, law):
    for product in products:
        cycles = law(M=product.M, K=product.K, N=product.N)
        if cycles != product.cycles:
            return f"{product}: cells work in {product.cycles} cycles, your law says {cycles}"
    return ""


LAWS = [("k", 10, ("row", "column"), wrong_k), ("n", 10, ("row", "column"), wrong_n),
        ("cycle", 20, ("m", "row", "column"), wrong_cycle), ("terms", 10, ("row", "column"), wrong_terms),
        ("cycles", 10, ("M", "K", "N"), wrong_cycles)]


def grade(submission, bench, report, hidden):
    broken = ""
    try:
        laws = submission.json("laws.json")
        if not isinstance(laws, dict):
            broken = "laws.json is no object {...}"
    except Refused as problem:
        broken = f"laws.json: {problem}"
    products = [hidden_product(bench, hidden, *sizes) for sizes in ((4, 4), (3, 2), (2, 4))]
    for name, points, quantities, wrong in LAWS:
        try:
            report.exact(name, points, broken or wrong(products, Law(laws, name, quantities)))
        except Refused as problem:
            report.exact(name, points, str(problem))
        broken = broken and "laws.json cannot be read: see above"


def predictions(bench):
    known = Product(bench, list(range(1, 17)), [1, 2, 0, 1, 0, 1, 3, 1, 2, 0, 1, 1, 1, 1, 0, 2], (4, 4, 4))
    activation = [s["activation"] for s in known.steps if (s["row"], s["column"], s["cycle"]) == (0, 0, 2)]
    last = [s["sum_out"] for s in known.steps if (s["row"], s["column"], s["m"]) == (3, 1, 0)]
    return [("activation_00", 5, activation[-1], 0),
            ("cells_3", 5, sum(step["cycle"] == 3 for step in known.steps), 0),
            ("sum_31", 5, last[-1], 0),
            ("cycles", 5, known.cycles, 0)]
