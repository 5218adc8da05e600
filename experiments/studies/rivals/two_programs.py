#!/usr/bin/env python3
"""Two builds of this program in turns: prints the ratio of their times, new to old, per row.

  two_programs.py OLD NEW [--rounds N] [--only TEXT]

OLD and NEW are programs `triptych`. In each round each row runs once with both, in alternating order, on
the same two processors. The ratio is the median of the rounds, with the smallest and the largest.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import statistics
import subprocess

# Model, mode, batch and contract.
ROWS = [
    *[("unet-s", "infer", batch, "f32") for batch in (1, 8)],
    *[("unet-m", "infer", batch, "f32") for batch in (1, 8)],
    ("unet-l", "infer", 1, "f32"),
    ("unet-s", "train", 8, "f32"),
    ("unet-m", "train", 8, "f32"),
    ("unet-l", "train", 1, "f32"),
    ("cnn", "train", 8, "f32"),
    ("unet-s", "infer", 1, "bf16-exact"),
    ("unet-m", "infer", 1, "bf16-exact"),
    ("unet-s", "train", 8, "bf16-exact"),
    ("unet-s", "infer", 1, "bf16"),
    ("unet-m", "infer", 8, "bf16"),
    ("unet-m", "train", 8, "bf16"),
]


def seconds(program, row):
    """The median of one process."""
    model, mode, batch, contract = row
    words = [program, "bench", "--model", model, "--mode", mode, "--batch", str(batch), "--contract", contract,
             "--threads", "2", "--json"]
    if model in ("unet-m", "unet-l"):
        words += ["--repeats", "5" if mode == "train" else "11"]
    done = subprocess.run(["taskset", "-c", "0,1", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\nfailed: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)["results"][0]["median"]["value"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="rows whose text has this, as 'unet-s infer'")
    options = parser.parse_args()
    rows = [row for row in ROWS if options.only in " ".join(map(str, row))]
    times = {}
    for number in range(options.rounds):
        for row in rows:
            for program in (options.old, options.new) if number % 2 == 0 else (options.new, options.old):
                times.setdefault((row, program), []).append(seconds(program, row))
    print("| work | old, ms | new, ms | ratio |\n|---|---:|---:|---:|")
    for row in rows:
        old, new = times[row, options.old], times[row, options.new]
        ratios = [after / before for before, after in zip(old, new)]
        middle = [f"{1e3 * statistics.median(values):.3g}" for values in (old, new)]
        print(f"| {' '.join(map(str, row))} | {middle[0]} | {middle[1]} | {statistics.median(ratios):.3f} "
              f"({min(ratios):.3f} to {max(ratios):.3f}) |")


if __name__ == "__main__":
    main()
