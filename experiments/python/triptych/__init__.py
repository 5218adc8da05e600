"""One deep-learning computation on unlike machines: processor, GPU, systolic array.

    import numpy as np, triptych
    y = triptych.ops.relu(np.float32([-1, 2]), backend="cuda-emulated")
    y.value, y.kernel, y.seconds, y.time_kind, y.counters
"""
# SPDX-License-Identifier: Apache-2.0
from . import data, nn, ops
from ._triptych import (
    BadInput,
    DeviceUnavailable,
    Error,
    NumericMismatch,
    RankFailed,
    Unsupported,
    Value,
    devices,
    drop_plans,
    kept_plans,
)
from .graph import Graph, Plan, function, load
from .ops import Result

__all__ = [
    "BadInput",
    "DeviceUnavailable",
    "Error",
    "Graph",
    "NumericMismatch",
    "Plan",
    "RankFailed",
    "Result",
    "Unsupported",
    "Value",
    "data",
    "devices",
    "drop_plans",
    "function",
    "kept_plans",
    "load",
    "nn",
    "ops",
]
