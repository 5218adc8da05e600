"""Messages between ranks: the claims "ring", "averaging" and "model-parallel-gradients"."""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import struct
import tempfile

from program import command
from report import axis, bytes_text, figure, finding, line_chart, series, table
from rules import judge_averaging, judge_model_parallel_gradients, judge_ring

FLOAT = 4  # bytes
RANKS = (2, 4, 8, 16)
#: Ranks behind a switch, with the links that `triptych train --transport simulated` assumes.
SWITCHED = ("--contract", "bf16", "--device", "tpu-v5e", "--link", "rank", "--link-latency", "1e-6",
            "--link-efficiency", "0.9", "--interconnect", "switch", "--no-overlap", "--epoch-seconds", 0, "--steps", 1)


def modelled_rows(program, *words):
    """Rows of `bench strategies` from data sheets alone, without that of one rank."""
    rows = program.results("bench", "strategies", *words)
    return [row for row in rows if row["assumptions"] == "plain" and row["ranks"] > 1]


def ring_rows(program, model):
    """(ranks, row of the server, row of the ring)."""
    rows = modelled_rows(program, "--model", model, "--batch", RANKS[-1], "--ranks", ",".join(map(str, RANKS)),
                         "--strategies", "ps-sync,dp", *SWITCHED)
    by_key = {(row["strategy"], row["ranks"]): row for row in rows}
    return [(ranks, by_key["ps-sync", ranks], by_key["dp", ranks]) for ranks in RANKS]


def ring_charts(rows):
    charts = []
    for name, title, label, unit, value in (
            ("ring-bytes", "Bytes over the busiest link", "bytes", "byte", lambda row: row["bytes_sent"]),
            ("ring-times", "Modelled time of one exchange", "time", "s",
             lambda row: row["modelled_communication"]["value"])):
        lines = [series(text, "modelled", [(row[0], value(row[column])) for row in rows])
                 for text, column in (("server", 1), ("ring", 2))]
        charts.append(line_chart(name, title, axis("ranks", "1", log=True), axis(label, unit, log=True), lines))
    return charts


def examine_ring(program):
    model = "unet-s" if program.quick else "unet-m"
    rows = ring_rows(program, model)
    buffer = FLOAT * rows[0][2]["elements_summed"][0]
    links = [(ranks, server["bytes_sent"], ring["bytes_sent"]) for ranks, server, ring in rows]
    (_, server, ring), (_, last_server, last_ring) = links[0], links[-1]
    train = ["train", "--model", model, "--ranks", 4, "--batch", 4, "--steps", 1, "--transport", "simulated",
             "--interconnect", "switch", "--strategy"]
    return finding(
        judge_ring(links, buffer),
        f"{model}: {bytes_text(buffer)} of gradients. From 2 to 16 ranks what the server's link carries in a step grows "
        f"{last_server / server:.1f} times, from {bytes_text(server)} to {bytes_text(last_server)}; what a rank of the "
        f"ring sends stays below twice the gradients: {bytes_text(ring)} and {bytes_text(last_ring)}.",
        [command(*train, "ps-sync"), command(*train, "dp", "--order", "ring")],
        [table("One training step: bytes over the busiest link, one direction",
               [("ranks", "1"), ("server", "byte"), ("ring", "byte"), ("server, behind a switch", "s"),
                ("ring, behind a switch", "s")],
               [[ranks, figure(server["bytes_sent"], "byte", "modelled"), figure(ring["bytes_sent"], "byte", "modelled"),
                 server["modelled_communication"], ring["modelled_communication"]] for ranks, server, ring in rows])],
        ring_charts(rows))


STEPS = 32
#: Plain descent: averaging after each step then is descent along the mean gradient.
SHORT_RUN = ("train", "--model", "unet-s", "--base", 4, "--depth", 2, "--size", 32, "--synthetic-images", 20, "--batch",
             8, "--steps", STEPS, "--steps-per-epoch", STEPS, "--optimizer", "sgd", "--momentum", 0, "--lr", 0.1, "--augmentation", "none",
             "--threads", 1, "--ranks", 2)


def read_tensors(path):
    """The float32 tensors of a safetensors file by name."""
    content = path.read_bytes()
    size = struct.unpack_from("<Q", content)[0]
    tensors = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if entry.get("dtype") == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = struct.unpack(f"<{(end - begin) // FLOAT}f", content[8 + size + begin:8 + size + end])
    return tensors


class ShortRun:
    """A short training run on two ranks. `period`: steps between averages of all states, or 0: gradients are summed in
    each step."""

    def __init__(self, program, period, folder):
        self.strategy = f"local-sgd:{period}" if period else "dp"
        run, weights = folder / f"run-{period}", folder / f"weights-{period}.safetensors"
        report = program.results(*SHORT_RUN, "--strategy", self.strategy, "--out", run)[0]
        program.results("export", run, "--out", weights)
        tensors = read_tensors(weights)
        self.losses = report["losses"]
        self.elements = sum(map(len, tensors.values())) if period else report["parameters"]
        #: Per step, by each of two ranks of a ring.
        self.bytes_sent = FLOAT * self.elements / max(period, 1)
        self.weights = [value for name, values in sorted(tensors.items()) if ".running_" not in name
                        for value in values]

    def last_losses(self):
        return sum(self.losses[-8:]) / 8


def largest_difference(a, b):
    """The largest difference of weights, relative to the largest weight."""
    return max(abs(one - other) for one, other in zip(a, b)) / max(map(abs, a))


def examine_averaging(program):
    with tempfile.TemporaryDirectory(prefix="triptych-") as folder:
        runs = [ShortRun(program, period, pathlib.Path(folder)) for period in (0, 1, 8)]
    synchronous, every, some = runs
    differences = [largest_difference(synchronous.weights, run.weights) for run in runs]
    return finding(
        judge_averaging(synchronous.bytes_sent, some.bytes_sent, differences[2], differences[1]),
        f"Two ranks, {STEPS} steps of plain gradient descent. Averaging every 8 steps sends "
        f"{some.bytes_sent / synchronous.bytes_sent:.2g} times the bytes of summing gradients in every step, and ends "
        f"with weights that differ by {differences[2]:.2g} of the largest and a loss of {some.last_losses():.3f} against "
        f"{synchronous.last_losses():.3f}. Averaged in every step the weights are those of the whole batch's gradient, to "
        f"{differences[1]:.1g}: it is the steps apart that are not backpropagation.",
        [command(*SHORT_RUN, "--strategy", run.strategy) for run in runs],
        [table("Weights averaged, and gradients summed",
               [("strategy", ""), ("elements at a time", "1"), ("sent per step", "byte"),
                ("loss of the last 8 steps", "1"), ("largest difference of a weight", "1")],
               [[run.strategy, run.elements, figure(run.bytes_sent, "byte", "modelled"), run.last_losses(), difference]
                for run, difference in zip(runs, differences)])],
        [line_chart("averaging-losses", "Loss by step", axis("step", "1"), axis("loss", "1"),
                    [series(run.strategy, "measured", enumerate(run.losses, 1)) for run in runs])])


def examine_model_parallel_gradients(program):
    words = ("--model", "unet-s", "--batch", 2, "--device", "rtx2070super", "--link", "pcie3x8", "--ranks", 2,
             "--strategies", "layers,dp")
    layers, replicated = modelled_rows(program, *words)
    sums, messages = max(layers["elements_summed"]), sum(layers["elements_passed"])
    data_parallel = max(replicated["elements_summed"])
    return finding(
        judge_model_parallel_gradients(sums, data_parallel),
        f"unet-s, cut into two stages: its ranks sum {sums} elements in a step (the loss), and send each other "
        f"{messages} of activations and their gradients. Each has other parameters, so there is no gradient to sum; it "
        f"is data parallelism that sums, {data_parallel} elements.",
        [command("bench", "strategies", *words, "--json")],
        [table("Elements that the ranks' graphs send, unet-s, batch 2",
               [("strategy", ""), ("rank", "1"), ("to be summed", "1"), ("to another rank", "1")],
               [[row["strategy"], rank, summed, passed] for row in (layers, replicated)
                for rank, (summed, passed) in enumerate(zip(row["elements_summed"], row["elements_passed"]))])])
