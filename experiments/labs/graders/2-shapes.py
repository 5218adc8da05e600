"""Grader of lab 2: for which shapes a systolic array idles, and what a batch or another array changes."""
# SPDX-License-Identifier: Apache-2.0
from grading import Refused, Sheet, is_whole, shown

STALLS = "it is cycles less issue_cycles, as step 2 shows them"
WEIGHTS = "it is stall_weights_cycles of step 2"
SQUARE = [("mmu8", 8), ("mmu16", 16), ("mmu32", 32)]
CELLS, BUDGET = 256, 18_100
YOURS = ("schema", "name", "rows", "columns")  # keys of machine.json that may differ from mmu16
DEFAULTS = {"dataflows": "weight-stationary"}  # keys that a machine file may leave out


def conv(shape, window, machine="mmu16", direction="forward"):
    return ("conv", "--shape", shape, "--window", window, "--machine", machine, "--pass", direction)


def product(m, k, n, machine="mmu16"):
    return ("matmul", "--m", m, "--k", k, "--n", n, "--machine", machine)


FIRST_LAYER, HEAD = conv("3,16,32,32", 3), conv("8,1,64,64", 1)
TRANSPOSED = ("--model", "unet-s", "--backend", "systolic", "--machine", "mmu16", "--contract", "bf16",
              "--node", "up1.transpose")


def stalls(counters):
    """Cycles in which nothing enters the array."""
    return counters["cycles"] - counters["issue_cycles"]


def grade_measured(sheet, bench, report):
    for name, layer in [("first_layer_stalls", FIRST_LAYER),
                        ("first_layer_wide_stalls", conv("3,16,32,32", 3, "tpu-v2-core")),
                        ("head_stalls", HEAD), ("transposed_stalls", TRANSPOSED)]:
        report.exact(name, 3, sheet.problem_of_value(name, stalls(bench.counters(*layer)), STALLS))
    for name, batch in [("batch_1_weight_stalls", 1), ("batch_64_weight_stalls", 64)]:
        expected = bench.counters(*product(batch, 256, 256))["stall_weights_cycles"]
        report.exact(name, 3, sheet.problem_of_value(name, expected, WEIGHTS))


def hidden_conv(hidden):
    """(arguments, variables) of a convolution on a square machine."""
    machine, side = SQUARE[hidden.below(3)]
    window = 1 if hidden.below(3) == 0 else 3
    # Few channels without a neighbourhood would be padded to a group.
    channels = 1 << (5 + hidden.below(2) if window == 1 else hidden.below(7))
    filters, height, width = 1 + hidden.below(70), 5 + hidden.below(12), 5 + hidden.below(12)
    at = {"R": side, "C": side, "channels": channels, "filters": filters, "positions": height * width,
          "taps": window * window}
    return conv(f"{channels},{filters},{height},{width}", window, machine), at


def grade_conv_formulas(sheet, bench, hidden, report):
    issue, filled = [], []
    for _ in range(4):
        arguments, at = hidden_conv(hidden)
        counters = bench.counters(*arguments)
        slots = counters["issue_cycles"]
        issue.append((at, slots))
        filled.append((at, counters["macs"] / (slots * at["R"] * at["C"])))
    report.exact("formula issue_cycles", 8, sheet.problem_of_formula(
        "issue_cycles", issue, "how many tiles of R x C weights are there, and how long does each stay? Parts of a "
        "tile take as long as a tile"))
    report.exact("formula filled", 8, sheet.problem_of_formula(
        "filled", filled, "of the R C cells, which have a weight, averaged over the tiles?"))


def grade_weight_formula(sheet, bench, hidden, report):
    samples = []
    for _ in range(3):
        machine, side = SQUARE[hidden.below(3)]
        m, k, n = 1 + hidden.below(12), 20 + hidden.below(280), 20 + hidden.below(280)
        counters = bench.counters(*product(m, k, n, machine))
        samples.append(({"R": side, "C": side, "m": m, "k": k, "n": n}, counters["weight_reads"]))
    report.exact("formula weights_moved", 8, sheet.problem_of_formula(
        "weights_moved", samples, "every tile is moved whole, once, however few rows of activations meet it"))


def is_fed(bench, batch):
    """True if nine tenths of the cycles of that batch put something into the array."""
    counters = bench.counters(*product(batch, 256, 256))
    return 10 * counters["issue_cycles"] >= 9 * counters["cycles"]


def batch_problem(sheet, bench):
    batch = sheet.whole("smallest_batch")
    if not 1 <= batch <= 4096:
        return f"a batch of {batch} is not from 1 to 4096"
    if not is_fed(bench, batch):
        return f"with {batch} rows less than nine tenths of the cycles are issue_cycles"
    if batch > 1 and is_fed(bench, batch - 1):
        return f"{batch} rows feed the array, but {batch - 1} do, too"
    return ""


def sides_problem(machine, standard):
    """The first reason for which `machine` is not the standard one with other sides."""
    for key, value in standard.items():
        if key not in YOURS and machine.get(key, DEFAULTS.get(key)) != value:
            return f'"{key}" of machine.json is not that of mmu16; rows and columns are yours to change'
    rows, columns = machine.get("rows"), machine.get("columns")
    if not (is_whole(rows) and is_whole(columns) and rows >= 1 and columns >= 1 and rows * columns <= CELLS):
        return f"machine.json has {shown(rows)} rows and {shown(columns)} columns, and {CELLS} cells are paid for"
    return ""


def machine_problem(submission, bench):
    machine = submission.json("machine.json")
    standard = bench.results("machine", "show", "mmu16")[0]["machine"]
    if not isinstance(machine, dict):
        return "machine.json is no object {...}"
    problem = sides_problem(machine, standard)
    if problem:
        return problem
    bench.put("machine.json", submission.text("machine.json"))
    layers = [conv("3,8,32,32", 3, "machine.json"), conv("8,1,64,64", 1, "machine.json"),
              conv("64,4,16,16", 3, "machine.json"), conv("16,8,32,32", 3, "machine.json", "data")]
    cycles = sum(bench.counters(*layer)["cycles"] for layer in layers)
    if cycles <= BUDGET:
        return ""
    return (f"{machine['rows']} x {machine['columns']} cells take {cycles} cycles for the four layers, and {BUDGET} "
            "are the budget")


def refusal(prefix, problem, *arguments):
    """The problem, also where finding it is refused."""
    try:
        return problem(*arguments)
    except Refused as refused:
        return prefix + str(refused)


def grade(submission, bench, report, hidden):
    sheet = Sheet(submission, "formulas.json")
    grade_measured(sheet, bench, report)
    grade_conv_formulas(sheet, bench, hidden, report)
    grade_weight_formula(sheet, bench, hidden, report)
    report.exact("smallest_batch", 9, refusal("", batch_problem, sheet, bench))
    report.exact("machine", 9, refusal("machine.json: ", machine_problem, submission, bench))


def percent(counters, products):
    """Products of the layer, of all that the cells could have done, in per cent."""
    return 100 * products / (counters["cycles"] * 16 * 16)


def predictions(bench):
    one, sixteen = bench.counters(*product(1, 256, 256)), bench.counters(*product(16, 256, 256))
    return [("first_layer_percent", 5, percent(bench.counters(*FIRST_LAYER), 27 * 16 * 1024), 0.25),
            ("head_percent", 5, percent(bench.counters(*HEAD), 8 * 4096), 0.25),
            ("batch_1_percent", 5, percent(one, 256 * 256), 0.4),
            ("batch_16_times_as_long", 5, sixteen["cycles"] / one["cycles"], 0.1)]
