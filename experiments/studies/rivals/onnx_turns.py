#!/usr/bin/env python3
"""ONNX files in turns with ONNX Runtime: processor time of one inference on one thread, wall time on more.

  onnx_turns.py FILE.onnx... [--threads N] [--rounds N] [--seed N]

Prints a table. Wants numpy, onnxruntime and Triptych's module (PYTHONPATH=BUILD/python). Inputs are random:
normal numbers, and whole numbers from 0 to 9. Open sizes are 1. A time is the least of the rounds, in each of
which both run for about a tenth of a second. Both outputs are compared.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import gc
import pathlib
import time

import numpy as np
import onnxruntime
import triptych

REST = 0.1  # seconds before a turn: threads of the other one may poll for more work for some time


def inputs_of(session, seed):
    random = np.random.default_rng(seed)
    inputs = {}
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in value.shape]
        if value.type == "tensor(float)":
            inputs[value.name] = random.standard_normal(shape).astype(np.float32)
        else:
            inputs[value.name] = random.integers(0, 10, shape).astype(value.type[7:-1])
    return inputs


def seconds(run, calls, clock):
    time.sleep(REST)
    begin = clock()
    for _ in range(calls):
        run()
    return (clock() - begin) / calls


def compare(path, threads, rounds, seed):
    clock = time.process_time if threads == 1 else time.perf_counter
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = inputs_of(session, seed)
    plan = triptych.load(path).plan(threads=threads, inference=True)
    ours, theirs = plan.run(**inputs), session.run(None, inputs)
    for value, expected in zip(session.get_outputs(), theirs):
        np.testing.assert_allclose(ours[value.name], expected, rtol=1e-3, atol=1e-4, err_msg=path)
    runs = (lambda: plan.run(**inputs), lambda: session.run(None, inputs))
    calls = [max(3, int(0.1 / max(1e-5, seconds(run, 20, clock)))) for run in runs]
    times = [[seconds(run, count, clock) for run, count in zip(runs, calls)] for _ in range(rounds)]
    return [1e3 * min(column) for column in zip(*times)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    gc.disable()
    print("| file | Triptych, ms | ONNX Runtime, ms | times as fast |\n|---|---:|---:|---:|")
    for path in options.files:
        ours, theirs = compare(path, options.threads, options.rounds, options.seed)
        print(f"| {pathlib.Path(path).stem} | {ours:.3f} | {theirs:.3f} | {theirs / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
