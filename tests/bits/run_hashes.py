"""Weights of thirty short trainings, held to those of an earlier commit: what a change of structure must not change.

  run_hashes.py PROGRAM [--file FILE]      compares; exit status 1 with the names of the runs that differ
  run_hashes.py PROGRAM --record [--file FILE]   writes the file instead

The file (run_hashes.csv here) has a name, a fingerprint and what it holds for: `anywhere` (bf16-exact has the same bits on
every machine, and the emulated GPU does not depend on its host) or the SIMD that it was made with, and under bf16 the tile
unit. Elsewhere it is not compared.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

MODEL = ["--model", "unet-s", "--base", "4", "--depth", "2", "--size", "16", "--batch", "4", "--steps", "3", "--threads", "1",
         "--synthetic-images", "6", "--seed", "3"]
STRATEGIES = ["dp", "zero1", "zero2", "zero3", "layers", "pipeline:2", "pipeline:2,gpipe", "tp", "ps-sync", "central",
              "local-sgd:2"]


def runs():
    """Name and options of each."""
    for contract in ("f32", "bf16", "bf16-exact"):
        yield f"cpu {contract}", ["--contract", contract]
        yield f"cuda-emulated {contract}", ["--backend", "cuda-emulated", "--contract", contract]
    for contract in ("bf16", "bf16-exact"):
        yield f"systolic {contract}", ["--backend", "systolic", "--fallback", "cpu", "--contract", contract]
    for optimizer in ("sgd", "adamw"):
        yield f"cpu f32 {optimizer}", ["--optimizer", optimizer]
    yield "cpu bf16-exact dice all", ["--contract", "bf16-exact", "--loss", "dice", "--augmentation", "all"]
    yield "cpu bf16-exact strong", ["--contract", "bf16-exact", "--augmentation", "strong"]
    for strategy in STRATEGIES:
        yield f"2 ranks {strategy}", ["--contract", "bf16-exact", "--ranks", "2", "--strategy", strategy]
    for order in ("ring", "shard-tree"):
        yield f"2 ranks {order}", ["--contract", "bf16-exact", "--ranks", "2", "--order", order]
    yield "4 ranks shard-tree", ["--contract", "bf16-exact", "--ranks", "4", "--order", "shard-tree", "--shards", "4"]
    yield "2 ranks overlap", ["--contract", "bf16-exact", "--ranks", "2", "--overlap"]
    yield "cpu bf16-exact accumulate", ["--contract", "bf16-exact", "--accumulate", "4"]
    yield "2 ranks accumulate", ["--contract", "bf16-exact", "--ranks", "2", "--accumulate", "2", "--order", "shard-tree"]
    yield "4 ranks ddp2d", ["--contract", "bf16-exact", "--ranks", "4", "--strategy", "ddp2d", "--mesh", "node=2,device=2"]
    yield "4 ranks pipelines", ["--contract", "bf16-exact", "--ranks", "4", "--strategy", "pipeline:2", "--mesh", "dp=2,pp=2"]
    yield "2 ranks simulated", ["--contract", "bf16-exact", "--ranks", "2", "--transport", "simulated"]
    yield "cuda-emulated 2 ranks zero2", ["--backend", "cuda-emulated", "--contract", "bf16-exact", "--ranks", "2",
                                          "--strategy", "zero2"]


def output(program, arguments, folder):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, cwd=folder, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(arguments)}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["results"]


def units_of(program, folder):
    """The SIMD that computes f32, and the units that compute bf16."""
    properties = next(row["devices"][0]["properties"] for row in output(program, ["devices"], folder)
                      if row["backend"] == "cpu")
    return properties["simd"], " ".join(filter(None, (properties["simd"], properties.get("tile_unit"))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--file", type=pathlib.Path, default=pathlib.Path(__file__).with_name("run_hashes.csv"))
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        simd, tiles = units_of(arguments.program, folder)
        found = [(name, output(arguments.program, ["train", *MODEL, *options], folder)[0]["weights_sha256"],
                  "anywhere" if "bf16-exact" in options or "cuda-emulated" in options
                  else tiles if "bf16" in options else simd)
                 for name, options in runs()]
    if arguments.record:
        with arguments.file.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("run", "weights", "holds"), *found])
        return
    with arguments.file.open(newline="") as file:
        known = {row["run"]: row for row in csv.DictReader(file)}
    different = [name for name, weights, holds in found
                 if known[name]["holds"] == holds and known[name]["weights"] != weights]
    print(f"{len(found)} runs, {len(different)} different{': ' if different else ''}{', '.join(different)}")
    sys.exit(1 if different else 0)


main()
