#!/usr/bin/env python3
"""Training steps of a U-Net of PyTorch, there and moved over, in turns within one run.

  PYTHONPATH=build/release/python python3 tests/python/torch_speed.py [--base 32] [--depth 4] [--size 128] [--batch 8]
                                                                      [--threads 2] [--rounds 9]

PyTorch runs eagerly and compiled, each with both layouts of pictures in memory; the defaults are unet-m. Prints
medians over rounds, the spread of half of them, and how many times as long each takes as the moved one: by the clock,
and in processor time, which says more on a busy machine. Losses of the first steps are compared before. SGD with
momentum, f32.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import pathlib
import statistics
import sys
import time

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parity"))

import triptych  # noqa: E402
from torch_parity import UNet  # noqa: E402

RATE, MOMENTUM, COMPARED = 0.01, 0.9, 3


def options():
    parser = argparse.ArgumentParser()
    for name, value in dict(base=32, depth=4, size=128, batch=8, threads=2, rounds=9).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def network(given):
    torch.manual_seed(0)
    return UNet(given.base, given.depth)


def theirs(given, x, y, compiled, layout):
    """A step of PyTorch, as a function without arguments that returns the loss."""
    net = network(given).to(memory_format=layout)
    x = x.contiguous(memory_format=layout)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=MOMENTUM)
    forward = torch.compile(net) if compiled else net

    def step():
        loss = torch.nn.functional.binary_cross_entropy_with_logits(forward(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def moved(given, x, y):
    g = triptych.from_torch(network(given), x)
    loss = triptych.nn.segmentation_loss(g.result("y"), g.input("target", tuple(y.shape)))
    plan = g.train(loss, "sgd", momentum=MOMENTUM).plan("cpu", threads=given.threads)
    return lambda: plan.run(x=x, target=y, learning_rate=RATE)["loss"].item()


def timed(step):
    wall, processor = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - wall, time.process_time() - processor


def report(times, given):
    """A line for each; ratios are medians over the rounds' own ratios."""
    print(f"\nU-Net base {given.base}, depth {given.depth}, {given.size} x {given.size}, batch {given.batch}, "
          f"{given.threads} threads, {given.rounds} rounds; PyTorch {torch.__version__}")
    print("| step | wall, s | half of them | times as long | processor, s | times as much |\n|---|---:|---|---:|---:|---:|")
    ours = times["moved over"]
    for name, rows in times.items():
        wall, processor = zip(*rows)
        low, middle, high = statistics.quantiles(wall, n=4)
        ratios = [statistics.median(a[i] / b[i] for a, b in zip(rows, ours)) for i in (0, 1)]
        print(f"| {name} | {middle:.3f} | {low:.3f} to {high:.3f} | {ratios[0]:.2f} | "
              f"{statistics.median(processor):.3f} | {ratios[1]:.2f} |")


def main():
    given = options()
    torch.set_num_threads(given.threads)
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(given.batch, 1, given.size, given.size, generator=generator)
    y = (torch.nn.functional.avg_pool2d(x, 5, 1, 2) > 0.05).float()
    steps = {"moved over": moved(given, x, y)}
    for name, layout in {"": torch.contiguous_format, ", channels last": torch.channels_last}.items():
        steps[f"PyTorch, eager{name}"] = theirs(given, x, y, False, layout)
        steps[f"PyTorch, compiled{name}"] = theirs(given, x, y, True, layout)
    losses = {}
    for name, step in steps.items():  # the first steps also compile
        losses[name] = [step() for _ in range(COMPARED)]
        print(f"{name}: losses {', '.join(f'{loss:.6f}' for loss in losses[name])}", flush=True)
    for each in losses.values():
        np.testing.assert_allclose(each, losses["moved over"], rtol=1e-3)
    times = {name: [] for name in steps}
    for _ in range(given.rounds):
        for name, step in steps.items():
            times[name].append(timed(step))
    report(times, given)


if __name__ == "__main__":
    main()
