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
    __version__,
    devices,
    drop_plans,
    kept_plans,
    load_plugin,
    set_max_memory,
)
from .compare import Comparison, compare
from .data import DLPack
from .graph import Graph, Plan, function, load
from .machine import Machine, MachineRun, machine_names, rtl_machines
from .ops import Result
from .table import Table
from .pytorch import from_torch
from .train import Progress, Trainer

__all__ = [
    "BadInput",
    "Comparison",
    "DLPack",
    "DeviceUnavailable",
    "Error",
    "Graph",
    "Machine",
    "MachineRun",
    "NumericMismatch",
    "Plan",
    "Progress",
    "RankFailed",
    "Result",
    "Table",
    "Trainer",
    "Unsupported",
    "Value",
    "__version__",
    "compare",
    "data",
    "devices",
    "drop_plans",
    "from_torch",
    "function",
    "kept_plans",
    "load",
    "load_plugin",
    "machine_names",
    "nn",
    "ops",
    "rtl_machines",
    "set_max_memory",
]
