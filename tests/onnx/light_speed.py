"""The nine light networks beside ONNX Runtime: batch 1, rounds in turns, medians, and this program's memory.

Usage: light_speed.py PROGRAM [--threads N] [--rounds R] [--only NAME]. Wants numpy and onnxruntime; the models are looked for
as in light_networks_test.py. Prints a table. It is no test, because its times are meaningless on a busy machine.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import importlib.metadata
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
from light_networks_test import input_of


def rival(model, threads):
    """Prints the median of about a second of runs, in ms, in a separate process, so that its threads end."""
    import onnxruntime  # not in the other process: what it takes would count as memory of those begun there

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    inputs = {one.name: numpy.random.default_rng(0).random(one.shape, "f4") for one in session.get_inputs()}
    session.run(None, inputs)
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < 1:
        start = time.perf_counter()
        session.run(None, inputs)
        times.append(time.perf_counter() - start)
    print(statistics.median(times) * 1e3)


def theirs(model, threads):
    command = [sys.executable, __file__, str(model), "--rival", "--threads", str(threads)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)


def ours(program, model, threads):
    command = [program, "bench", "--model", str(model), "--threads", str(threads), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return json.loads(done.stdout)["results"][0]["median"]["value"] * 1e3


def memory(program, model):
    """MiB that `run` says it needs, and that its process had at most."""
    with tempfile.TemporaryDirectory() as folder:
        name, shape = input_of(model)
        numpy.save(f"{folder}/x.npy", numpy.zeros(shape, "f4"))
        command = [program, "run", str(model), "--input", f"{name}={folder}/x.npy", "--out", f"{folder}/out", "--verbose"]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stderr
    return (int(re.search(pattern, said)[1]) for pattern in (r"the run needs (\d+) MiB", r"(\d+) MiB of memory at most"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", help="this program; with --rival, a model")
    parser.add_argument("--rival", action="store_true", help="time ONNX Runtime alone")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if arguments.rival:
        return rival(arguments.program, arguments.threads)
    beside = pathlib.Path(__file__).resolve().parents[2] / "../shared/data"
    folder = pathlib.Path(os.environ.get("TRIPTYCH_TEST_DATA", beside)) / "onnx_light"
    print(f"ONNX Runtime {importlib.metadata.version('onnxruntime')}, {arguments.threads} threads, {arguments.rounds} rounds in turns (measured)")
    print("| network | ours, ms | ONNX Runtime, ms | times as fast (lowest to highest) | planned, MiB | at most, MiB |")
    print("|---|---:|---:|---:|---:|---:|")
    for model in sorted(one for one in folder.glob("light_*.onnx") if arguments.only in one.name):
        rounds = [(ours(arguments.program, model, arguments.threads), theirs(model, arguments.threads))
                  for _ in range(arguments.rounds)]
        mine, other = (statistics.median(times) for times in zip(*rounds))
        ratios = sorted(b / a for a, b in rounds)
        planned, most = memory(arguments.program, model)
        print(f"| {model.stem.removeprefix('light_')} | {mine:.1f} | {other:.1f} | {statistics.median(ratios):.2f} "
              f"({ratios[0]:.2f}–{ratios[-1]:.2f}) | {planned} | {most} |", flush=True)


if __name__ == "__main__":
    main()
