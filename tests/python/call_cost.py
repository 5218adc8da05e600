#!/usr/bin/env python3
"""What a call from Python costs beside the same call from C++, in turns within one run.

  PYTHONPATH=build/release/python python3 tests/python/call_cost.py

Prints medians over rounds, in microseconds, and the import's time beyond NumPy's.
"""
# SPDX-License-Identifier: Apache-2.0
import statistics
import subprocess
import sys
import time

import numpy as np

import triptych
from triptych import ops

ROUNDS, CALLS = 301, 200  # a round fits into a slice of a busy processor


def per_call(call):
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - begin) / CALLS


def plan_costs():
    """(Python, C++, difference) of a prepared plan, medians over rounds taken in turns."""
    with triptych.Graph() as g:
        g.output("y", ops.relu(g.input("x", (16,))))
    plan = g.plan("cpu", threads=1)
    x = np.ones(16, np.float32)
    plan.run(x=x)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(per_call(lambda: plan.run(x=x)))
        theirs.append(plan.seconds_per_call(CALLS, x=x))
    difference = statistics.median(a - b for a, b in zip(ours, theirs))
    return statistics.median(ours), statistics.median(theirs), difference


def import_cost(module):
    command = [sys.executable, "-c", f"import numpy, time; t = time.process_time(); import {module}; "
               "print(time.process_time() - t)"]
    times = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
             for _ in range(9)]
    return statistics.median(times)


def main():
    ours, theirs, difference = plan_costs()
    x = np.ones(16, np.float32)
    ops.relu(x)
    relu = statistics.median(per_call(lambda: ops.relu(x)) for _ in range(ROUNDS))
    print(f"plan.run {ours * 1e6:.2f} us, C++ {theirs * 1e6:.2f} us, difference "
          f"{difference * 1e6:.2f} us (bar 3)")
    print(f"ops.relu on 16 floats {relu * 1e6:.2f} us (bar 10)")
    print(f"processor time of the import beyond NumPy {import_cost('triptych') * 1e3:.1f} ms (bar 100)")


if __name__ == "__main__":
    main()
