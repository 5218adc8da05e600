"""One training with everything switched on has one hash: on every machine, shared by 1, 2 and 4 ranks, and after kills.

one_hash.py PROGRAM [--large]: the large form is a whole unet-s, more steps, and machines shared by ranks, too. What is
compared is every loss, every score, and every tensor of the last and of the best checkpoint, the optimiser's, too.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import hashlib
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

EVERYTHING = ["--data", "data", "--invert", "--contract", "bf16-exact", "--batch", "8", "--optimizer", "adamw", "--lr", "5e-3",
              "--weight-decay", "1e-3", "--schedule", "cosine", "--warmup", "1", "--loss", "dice-cross-entropy",
              "--class-weights", "balanced", "--border-weight", "10", "--augmentation", "strong", "--drawing", "replacement",
              "--normalize", "image", "--cache", "1", "--statistics-batches", "2", "--keep", "dice", "--steps-per-epoch", "2",
              "--checkpoint-every", "1", "--validation", "0.25", "--order", "shard-tree", "--shards", "4", "--seed", "5",
              "--threads", "1", "--mask-pictures", "1"]
SMALL = ["--model", "unet-s", "--base", "4", "--depth", "2", "--size", "16", "--steps", "4"]
LARGE = ["--model", "unet-s", "--size", "64", "--steps", "12"]
PLACES = [["--backend", "cpu"], ["--backend", "cuda-emulated"], ["--backend", "systolic"],
          ["--backend", "cpu", "--ranks", "2"], ["--backend", "cpu", "--ranks", "4"]]
SHARED = [["--backend", "cuda-emulated", "--ranks", "2"], ["--backend", "systolic", "--ranks", "4"],
          ["--backend", "cpu", "--ranks", "4", "--overlap"], ["--backend", "cpu", "--ranks", "2", "--transport", "simulated"],
          ["--backend", "cpu", "--threads", "2"]]


def digest_of(path):
    """SHA-256 of the tensors of a safetensors file, by name, but for `run.epochs`, which has times."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    hashed = hashlib.sha256()
    for name, tensor in sorted(json.loads(content[8:8 + length]).items()):
        if name in ("__metadata__", "run.epochs"):
            continue
        begin, end = tensor["data_offsets"]
        hashed.update(f"{name} {tensor['dtype']} {tensor['shape']}\n".encode())
        hashed.update(content[8 + length + begin:8 + length + end])
    return hashed.hexdigest()


class Runs:
    def __init__(self, program, folder, options):
        self.program, self.folder, self.options = program, folder, [*options, *EVERYTHING]
        self.call("synthesize", "--out", "data", "--images", "8", "--size", "160", "--seed", "2")

    def call(self, *arguments):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    def outcome(self, out, said):
        """All that must not depend on where it was computed."""
        result = json.loads(said)["results"][0]
        scores = [{key: value for key, value in epoch.items() if not key.endswith(("_time", "_per_second"))}
                  for epoch in result["epochs"]]
        states = [digest_of(max((self.folder / out / place).glob("step-*.safetensors")))
                  for place in ("checkpoint", "best/checkpoint")]
        return {"weights": result["weights_sha256"], "losses": result["losses"], "epochs": scores,
                "best": result["best_epoch"], "states": states}

    def whole(self, out, place):
        return self.outcome(out, self.call("train", *self.options, *place, "--out", out, "--json"))

    def killed(self, out, first, then):
        """The run killed between two checkpoints at `first`, which goes on at `then`."""
        with subprocess.Popen([self.program, "train", *self.options, *first, "--out", out], cwd=self.folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            checkpoints = self.folder / out / "checkpoint"

            def far_enough():
                return any(path.name > "checkpoint-000001.json" for path in checkpoints.glob("checkpoint-*.json"))
            while not far_enough():
                if process.poll() is not None and not far_enough():
                    sys.exit(f"{out}: ended with {process.returncode} before it was killed")
                time.sleep(0.002)
            process.kill()
        return self.outcome(out, self.call("train", "--resume", out, *then, "--json"))


def difference(one, other):
    """Names of the differences."""
    return [key for key in one if one[key] != other[key]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(arguments.program, pathlib.Path(folder), LARGE if arguments.large else SMALL)
        places = [*PLACES, *(SHARED if arguments.large else [])]
        found = {" ".join(place): runs.whole(f"whole-{i}", place) for i, place in enumerate(places)}
        for i, (first, then) in enumerate(zip(places, [*places[1:], places[0]])):
            then = [*then, *([] if "--ranks" in then else ["--ranks", "1"])]
            found[f"{' '.join(first)}, killed, then {' '.join(then)}"] = runs.killed(f"killed-{i}", first, then)
    known = next(iter(found.values()))
    wrong = {name: difference(known, one) for name, one in found.items() if one != known}
    print(f"{len(found)} runs, {len(wrong)} different, {len(known['losses'])} steps, weights {known['weights'][:12]}")
    for name, what in wrong.items():
        print(f"  {name}: other {', '.join(what)}")
    sys.exit(1 if wrong else 0)


main()
