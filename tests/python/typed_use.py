"""Uses of the module that a type checker must accept; not run."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import numpy as np

import triptych
from triptych import ops


def at_once() -> float:
    x = np.ones((1, 3, 8, 8), np.float32)
    result = ops.conv(x, np.ones((4, 3, 3, 3), np.float32), pads=[1, 1, 1, 1], backend="systolic")
    counters: dict[str, float] = result.counters
    return float(result.value.sum()) + result.seconds + sum(counters.values())


def graph() -> dict[str, np.ndarray[Any, Any]]:
    with triptych.Graph() as g:
        x = g.input("x", (4, 1))
        w = g.parameter("w", np.zeros((1, 1), np.float32))
        loss = ops.reduce_mean((x @ w - 1.0) * 2.0, keepdims=0)
    plan = g.train(loss, "sgd", momentum=0.9).plan("cpu", threads=1)
    return plan.run(x=np.ones((4, 1), np.float32), learning_rate=np.float32(0.1))


def experiment() -> str:
    trainer = triptych.Trainer("unet-s", epochs=1, out="run", ranks=2).train()
    frame: str = trainer.weights_sha256 + str(trainer.epochs[0]["loss"])
    comparison = triptych.compare("unet-s", backends=["cpu", "systolic"])
    return frame + str(comparison.identical) + comparison.page()


def hardware() -> int:
    run = triptych.Machine(rows=8, cols=8).run("halt", cells=(0, 3))
    return run.cycles + run.counters["macs"] + len(run.instructions)
