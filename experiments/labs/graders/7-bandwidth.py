"""Grader of lab 7: bytes and products of layers, their bound, and the batch from which an accelerator pays."""
# SPDX-License-Identifier: Apache-2.0
from grading import Sheet

UNET = ("--model", "unet-s", "--backend", "systolic", "--machine", "mmu16", "--contract", "bf16", "--node")
ADD_UP = "add up the four dram_..._bytes of step 2"


def layer(bench, node):
    return bench.counters(*UNET, node)


def product(bench, m, k, n):
    return bench.counters("matmul", "--machine", "mmu16", "--m", m, "--k", k, "--n", n)


def dram_bytes(counters):
    return sum(counters[f"dram_{unit}_bytes"] for unit in ("load", "weights", "compute", "store"))


def grade_measured(sheet, bench, report):
    bottom = layer(bench, "bottom.conv1")
    values = [("first_layer_bytes", dram_bytes(layer(bench, "down1.conv0")), ADD_UP),
              ("bottom_bytes", dram_bytes(bottom), ADD_UP),
              ("bottom_cycles", bottom["cycles"], "it is cycles of step 2"),
              ("head_bytes", dram_bytes(layer(bench, "head")), ADD_UP)]
    for name, value, hint in values:
        report.exact(name, 5, sheet.problem_of_value(name, value, hint))


def product_samples(bench, hidden):
    """Variables and values of each formula for hidden products."""
    samples = {}
    for _ in range(4):
        # Few rows, which all lie in the accumulators: each weight is fetched once.
        m, k, n = 1 + hidden.below(30), 16 * (2 + hidden.below(16)), 9 + hidden.below(200)
        at = {"m": m, "k": k, "n": n, "B": 4 + hidden.below(60)}
        counters = product(bench, m, k, n)
        total = dram_bytes(counters)
        values = {"weights_bytes": counters["dram_weights_bytes"], "activation_bytes": counters["dram_load_bytes"],
                  "result_bytes": counters["dram_store_bytes"], "intensity": 2 * counters["macs"] / total,
                  "dram_cycles": total / at["B"]}
        for name, value in values.items():
            samples.setdefault(name, []).append((at, value))
    return samples


def grade_products(sheet, bench, hidden, report):
    samples = product_samples(bench, hidden)
    for name, points, hint in [
            ("weights_bytes", 5, "a weight has 2 bytes, and is fetched once for all rows"),
            ("activation_bytes", 5, "each of the m rows has k numbers of 2 bytes"),
            ("result_bytes", 5, "results leave as float32"),
            ("intensity", 7, "a multiply-add is two operations; all bytes count"),
            ("dram_cycles", 5, "all bytes, at B bytes per cycle")]:
        report.exact(f"formula {name}", points, sheet.problem_of_formula(name, samples[name], hint))


def break_even(cpu, accelerator, fixed, latency, bytes, bandwidth):
    """The smallest batch that the accelerator computes faster. Times in seconds, the first two per image."""
    batch = 1
    while fixed + latency + batch * (accelerator + bytes / bandwidth) >= batch * cpu:
        batch += 1
    return batch


def grade_break_even(sheet, hidden, report):
    samples = []
    for _ in range(6):
        offer = {"cpu": hidden.uniform(0.02, 0.04), "accelerator": hidden.uniform(1e-4, 3e-3),
                 "fixed": hidden.uniform(0.1, 0.8), "latency": hidden.uniform(1e-6, 1e-3),
                 "bytes": hidden.uniform(5e6, 1.2e7), "bandwidth": hidden.uniform(1e9, 2e9)}
        samples.append((offer, break_even(**offer)))
    report.exact("formula break_even", 13, sheet.problem_of_formula(
        "break_even", samples, "it is the smallest whole number of images for which fixed + latency + b times what "
        "an image takes there, its transfer too, is less than b times cpu"))


def grade(submission, bench, report, hidden):
    sheet = Sheet(submission, "formulas.json")
    grade_measured(sheet, bench, report)
    grade_products(sheet, bench, hidden, report)
    grade_break_even(sheet, hidden, report)


def weights_percent(counters):
    return 100 * counters["dram_weights_bytes"] / dram_bytes(counters)


def dram_percent(energy):
    """DRAM's share of its energy and that of the multiply-adds."""
    return 100 * energy["DRAM"] / (energy["DRAM"] + energy["multiply"] + energy["add"])


def predictions(bench):
    offer = break_even(cpu=0.010, accelerator=0.001, fixed=0.050, latency=0, bytes=0, bandwidth=1)
    return [("weights_percent_1", 5, weights_percent(product(bench, 1, 256, 256)), 0.1),
            ("weights_percent_32", 5, weights_percent(product(bench, 32, 256, 256)), 0.1),
            ("break_even", 5, offer, 0),
            ("energy_percent", 5, dram_percent(bench.energy(*UNET, "bottom.conv1")), 0.05)]
