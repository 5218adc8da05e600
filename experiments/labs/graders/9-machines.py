"""Grader of lab 9: the same weights on each machine, and the benefit of sharing a network by data or by layers."""
# SPDX-License-Identifier: Apache-2.0
import math

from grading import Refused, Sheet

BYTES = 4 << 30  # a simulated machine maps its DRAM of 2 GiB, of which it touches little
COMPARE = ("compare", "--model", "unet-s", "--synthetic-images", "5", "--epochs", "1", "--batch", "2", "--seed", "1",
           "--backends", "cpu,systolic", "--out", "report.html", "--overwrite")
STRATEGIES = ("bench", "strategies", "--device", "rtx2070super", "--link", "pcie3x8", "--model", "unet-m",
              "--strategies", "dp,layers,pipeline:2", "--ranks", "2")
COPY = "copy the twelve digits that step 2 prints under weights"


class Model:
    """unet-m on the survey's GPUs: `bytes` that a rank sends and `gain` in per cent of each strategy, modelled."""

    def __init__(self, bench, batch, size):
        rows = bench.results(*STRATEGIES, "--batch", batch, "--size", size, bytes=BYTES)
        plain = {row["strategy"]: row for row in rows if row["assumptions"] == "plain"}
        self.bytes = {name: row["bytes_sent"] for name, row in plain.items()}
        self.gain = {name: row["speedup_percent"]["value"] for name, row in plain.items()}


def grade_bits(sheet, bench, report):
    machines = bench.results(*COMPARE, bytes=BYTES)["machines"]
    cpu, systolic = (machine["weights_sha256"][:12] for machine in machines)
    report.exact("weights_cpu", 4, sheet.problem_of_value("weights_cpu", cpu, COPY))
    report.exact("weights_systolic", 4, sheet.problem_of_value("weights_systolic", systolic, COPY))
    # The emulation takes too long for a check. Other tests show that its bits are the CPU's.
    report.exact("weights_cuda_emulated", 4, sheet.problem_of_value("weights_cuda_emulated", cpu, COPY))


def one_decimal(value):
    """Rounded half away from zero, as the program prints it."""
    return math.copysign(math.floor(10 * abs(value) + 0.5) / 10, value)


def grade_table(sheet, bench, report):
    model = Model(bench, 4, 128)
    for name in ("dp", "layers"):
        report.exact(f"{name}_bytes", 5, sheet.problem_of_value(
            f"{name}_bytes", model.bytes[name], "it is bytes_sent of step 3"))
    for name in ("dp", "layers"):
        report.exact(f"{name}_gain", 5, sheet.problem_of_formula(
            f"{name}_gain", [({}, one_decimal(model.gain[name]))], "step 3 has it under speedup %"))


def grade_formulas(sheet, bench, hidden, report):
    data, layers = [], []
    for size in (64, 128):
        batch = 2 * (1 + hidden.below(5))
        model, at = Model(bench, batch, size), {"batch": batch, "size": size}
        data.append((at, model.bytes["dp"]))
        layers.append((at, model.bytes["layers"]))
    report.exact("formula dp_bytes_at", 8, sheet.problem_of_formula(
        "dp_bytes_at", data, "how many images has a gradient?", 1e-3))
    report.exact("formula layers_bytes_at", 8, sheet.problem_of_formula(
        "layers_bytes_at", layers, "activations are there for each image and each pixel", 1e-3))


def layers_win(model):
    if model.gain["layers"] > model.gain["dp"]:
        return ""
    return f"layers gain {model.gain['layers']:.1f} % and dp {model.gain['dp']:.1f} %"


def pipeline_pays(model):
    return "" if model.gain["pipeline:2"] > 0 else f"pipeline:2 gains {model.gain['pipeline:2']:.1f} % over one GPU"


def found_problem(sheet, bench, name, problem_of):
    """The problem of the model at the student's batch and size, NAME_batch and NAME_size."""
    try:
        batch, size = sheet.whole(f"{name}_batch"), sheet.whole(f"{name}_size")
        images = f"{batch} images of {size} x {size}"
        if not (2 <= batch <= 32 and batch % 2 == 0 and 32 <= size <= 256 and size % 16 == 0):
            return f"a batch of {images} is not asked for: even, 2 to 32, and a multiple of 16 from 32 to 256"
        problem = problem_of(Model(bench, batch, size))
    except Refused as refused:
        return str(refused)
    return problem and f"with {images} {problem}"


def grade(submission, bench, report, hidden):
    sheet = Sheet(submission, "formulas.json")
    grade_bits(sheet, bench, report)
    grade_table(sheet, bench, report)
    grade_formulas(sheet, bench, hidden, report)
    report.exact("layers_win", 6, found_problem(sheet, bench, "layers_win", layers_win))
    report.exact("pipeline_pays", 6, found_problem(sheet, bench, "pipeline_pays", pipeline_pays))


def predictions(bench):
    model, twice = Model(bench, 4, 128), Model(bench, 8, 128)
    return [("same_weights", 5, "yes", 0),
            ("dp_megabytes", 5, model.bytes["dp"] / 1e6, 0.1),
            ("dp_factor", 5, twice.bytes["dp"] / model.bytes["dp"], 0.05),
            ("layers_factor", 5, twice.bytes["layers"] / model.bytes["layers"], 0.05)]
