"""Grader of lab 12: two dataflows on the twin, as formulas, as a choice for each layer, and as a program."""
# SPDX-License-Identifier: Apache-2.0
from grading import MACHINE_BYTES, Refused, Sheet, f32, f32_bits

WEIGHT, OUTPUT = "weight-stationary", "output-stationary"
SIDE = 8  # rows and columns of x, w and y of the program
STRAIGHT, EARLY = 155, 146  # cycles
HANDOUT = "handouts/12-dataflows/"
SHORT = "short.json"
WIDE = ("conv", "--machine", "mmu16-both", "--shape", "16,16,32,32")
RUN = ("mmu", "run", "sums.s", "--machine", "mmu4-both", "--dram", "x=x.npy", "--dram", "w=w.npy", "--out", "y=y.npy")


def product(machine, m, k, n):
    return ("matmul", "--machine", machine, "--m", m, "--k", k, "--n", n)


def both(bench, layer):
    """Counters of the best program in each dataflow."""
    node = bench.results("trace", *layer, bytes=MACHINE_BYTES)[0]["array"]["nodes"][0]
    return {each["dataflow"]: each["counters"] for each in node["dataflows"]}


def accesses(counters):
    return counters["accumulator_reads"] + counters["accumulator_writes"]


def grade_formulas(sheet, bench, hidden, report):
    samples = {name: [] for name in ("slots_w", "slots_o", "accumulators_w", "accumulators_o", "weights_bytes_o")}
    for i in range(4):
        side = 16 if i % 2 == 0 else 4
        m, k, n = 1 + hidden.below(60), 16 * (1 + hidden.below(6)), 1 + hidden.below(60)
        at = {"R": side, "C": side, "m": m, "k": k, "n": n}
        counters = both(bench, product(f"mmu{side}-both", m, k, n))
        samples["slots_w"].append((at, counters[WEIGHT]["issue_cycles"]))
        samples["slots_o"].append((at, counters[OUTPUT]["issue_cycles"]))
        samples["accumulators_w"].append((at, accesses(counters[WEIGHT])))
        samples["accumulators_o"].append((at, accesses(counters[OUTPUT])))
        samples["weights_bytes_o"].append((at, counters[OUTPUT]["dram_weights_bytes"]))
    for name, points, hint in [
            ("slots_w", 4, "each tile of w meets every row of x"),
            ("slots_o", 6, "in this dataflow a tile's rows are the slots; how often does a tile stream?"),
            ("accumulators_w", 6, "each tile of w adds to the sums of its columns, and a store reads them"),
            ("accumulators_o", 4, "when do sums leave the array?"),
            ("weights_bytes_o", 6, "how many rows of x does one pass of a tile serve?")]:
        report.exact(f"formula {name}", points, sheet.problem_of_formula(name, samples[name], hint))


def faster(bench, layer):
    counters = both(bench, layer)
    return min((WEIGHT, OUTPUT), key=lambda name: counters[name]["cycles"])


def largest_problem(sheet, bench):
    m = sheet.whole("largest_m")
    if not 1 <= m <= 256:
        return f"largest_m is {m}, and not from 1 to 256"
    if faster(bench, product(SHORT, m, 1024, 16)) != OUTPUT:
        return f"with m = {m} the product takes fewer cycles weight-stationary"
    if faster(bench, product(SHORT, m + 1, 1024, 16)) == OUTPUT:
        return f"with m = {m + 1} it also takes fewer cycles output-stationary"
    return ""


def grade_choices(sheet, bench, report):
    bench.put(SHORT, bench.lab_text(HANDOUT + SHORT))
    hint = "compare the cycles of both dataflows in step 3"
    report.exact("wide_layer", 4, sheet.problem_of_value("wide_layer", faster(bench, WIDE), hint))
    report.exact("deep_product", 4, sheet.problem_of_value(
        "deep_product", faster(bench, product(SHORT, 16, 1024, 16)), hint))
    try:
        problem = largest_problem(sheet, bench)
    except Refused as refused:
        problem = str(refused)
    report.exact("largest_m", 6, problem)


def known():
    """x and w that numbers.py of the handout writes."""
    return [i * 5 % 17 - 8 for i in range(SIDE * SIDE)], [i * 3 % 11 - 5 for i in range(SIDE * SIDE)]


def drawn(hidden):
    """Numbers of very different sizes, so that another order of additions gives other bits."""
    def number():
        return (hidden.below(511) - 255) * 2.0 ** (hidden.below(16) - 12)
    return [number() for _ in range(SIDE * SIDE)], [number() for _ in range(SIDE * SIDE)]


def multiplied(x, w):
    """x w, each element one chain of multiply-adds in ascending k. Products of bf16 are exact in double precision."""
    y = []
    for i in range(SIDE * SIDE):
        row, column = divmod(i, SIDE)
        total = 0.0
        for k in range(SIDE):
            total = f32(total + x[row * SIDE + k] * w[k * SIDE + column])
        y.append(total)
    return y


def run(bench, x, w, words):
    """Counters, and the first wrong element."""
    bench.put_array("x.npy", [SIDE, SIDE], x)
    bench.put_array("w.npy", [SIDE, SIDE], w)
    bench.remove("y.npy")
    counters = bench.results(*RUN)[0]["counters"]
    y = bench.array("y.npy")
    if y.spec != f"f32[{SIDE}, {SIDE}]":
        return counters, f"y should be f32[{SIDE}, {SIDE}], and is {y.spec}"
    for i, (got, right) in enumerate(zip(y.floats(), multiplied(x, w))):
        if f32_bits(got) != f32_bits(right):
            return counters, f"{words}: y[{i // SIDE}][{i % SIDE}] should be {right:g}, and is {got:g}"
    return counters, ""


def grade_program(submission, bench, report, hidden):
    try:
        bench.put("sums.s", submission.text("sums.s"))
        counters, problem = run(bench, *known(), "x and w of numbers.py")
        problem = problem or run(bench, *drawn(hidden), "other x and w")[1]
    except Refused as refused:
        counters, problem = {}, str(refused)
    report.exact("program: bits", 8, problem)

    def bounded(name, points, got, most, words):
        wrong = "counts when the bits are right" if problem else "" if got <= most else (
            f"{got:g} {words}, {most} are allowed")
        report.exact(name, points, wrong)
    bounded("program: sums stay", 4, 0 if problem else accesses(counters), 2 * SIDE * SIDE, "accesses of the accumulators")
    for most in (STRAIGHT, EARLY):
        bounded(f"program: cycles_{most}", 4, counters.get("cycles", 0), most, "cycles")
    if not problem and accesses(counters) <= 2 * SIDE * SIDE:
        report.standing("cycles", counters["cycles"])


def grade(submission, bench, report, hidden):
    sheet = Sheet(submission, "formulas.json")
    grade_formulas(sheet, bench, hidden, report)
    grade_choices(sheet, bench, report)
    grade_program(submission, bench, report, hidden)


def predictions(bench):
    deep, wide = (both(bench, product("mmu16-both", *shape)) for shape in ((16, 256, 64), (256, 256, 256)))
    return [("accumulators_w", 5, accesses(deep[WEIGHT]), 0.1),
            ("accumulators_o", 5, accesses(deep[OUTPUT]), 0),
            ("weights_bytes_o", 5, wide[OUTPUT]["dram_weights_bytes"], 0),
            ("times_as_long", 5, wide[OUTPUT]["cycles"] / wide[WEIGHT]["cycles"], 0.3)]
