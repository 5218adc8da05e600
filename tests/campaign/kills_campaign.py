# SPDX-License-Identifier: Apache-2.0
"""Trainings that are killed at random moments and resumed have the checkpoint of one that was never killed.

A trial draws a way to train, kills it with SIGKILL, sometimes again, and resumes it to its end. After each kill the
run must be readable. Moments are shares of the time that the whole training took here, so that the effect of a kill
depends on the machine. Options: campaign.py.
"""
import json
import shutil
import sys
import time

from campaign import Campaign, Failure, compare_tensors, main, read_checkpoint

COMMON = ["--base", 2, "--depth", 1, "--size", 16, "--batch", 4, "--threads", 1, "--epochs", 2, "--steps-per-epoch", 3,
          "--lr", 0.01, "--augmentation", "all", "--checkpoint-every", 1, "--mask-pictures", 1, "--quiet", "--seed", 7]
#: Name: options.
WAYS = {
    "plain": [],
    "best": ["--keep", "dice", "--patience", 4],
    "schedule": ["--schedule", "cosine", "--warmup", 3, "--optimizer", "adamw", "--weight-decay", 0.01, "--accumulate", 2],
    "zero1": ["--ranks", 2, "--strategy", "zero1"],
    "pipeline": ["--ranks", 2, "--strategy", "pipeline:2"],
    "local": ["--ranks", 2, "--strategy", "local-sgd:2"],
    "emulated": ["--backend", "cuda-emulated", "--contract", "bf16-exact"],
    "systolic": ["--backend", "systolic", "--contract", "bf16-exact"],
    "network": ["--model", "unet.onnx"],
}
MOST_KILLS = 4


def words_of(way):
    words = list(COMMON)
    if way == "network":
        del words[words.index("--base"):words.index("--size")]
    return ["train", "--data", "data", *words, *WAYS[way]]


class Kills(Campaign):
    def __init__(self, program, folder, arguments):
        super().__init__(program, folder)
        self.ways = [arguments.way] if arguments.way else list(WAYS)
        self.references = {}  # way: (tensors, scores, seconds)
        self.require("synthesize", "--images", 6, "--size", 24, "--out", "data")
        self.require("train", *COMMON, "--data", "data", "--steps", 1, "--out", "first")
        self.require("export", "first", "--out", "unet.onnx", "--pixels", "normalized")

    def reference(self, way):
        if way not in self.references:
            begun = time.monotonic()
            self.succeed(*words_of(way), "--out", f"whole-{way}")
            seconds = time.monotonic() - begun
            self.references[way] = (*self.outcome(f"whole-{way}"), seconds)
        return self.references[way]

    def outcome(self, name):
        """Tensors of the last checkpoint, scores of all epochs."""
        report = json.loads((self.folder / name / "report.json").read_text())["results"][0]
        return read_checkpoint(self.folder / name), [(epoch.get("dice"), epoch.get("loss")) for epoch in report["epochs"]]

    def succeed(self, *words):
        done = self.execute(words)
        if done.code != 0:
            raise Failure(f"exit code {done.code}: {done.said.strip()[-300:]}")

    def started(self):
        return any((self.folder / "own" / "checkpoint").glob("checkpoint-*.json"))

    def attempt(self, draw, number):
        way = self.ways[number % len(self.ways)]
        tensors, scores, seconds = self.reference(way)
        self.commands = []
        shutil.rmtree(self.folder / "own", ignore_errors=True)
        for _ in range(draw.choice([1, 1, 1, 1, 2, MOST_KILLS])):
            done = self.execute(self.next_command(way), kill_after=draw.uniform(0, seconds))
            if done.code not in (0, -9):
                raise Failure(f"exit code {done.code}: {done.said.strip()[-300:]}")
            if self.started() and draw.random() < .2:
                self.succeed("export", "own", "--out", "own.safetensors", "--overwrite")
        self.succeed(*self.next_command(way))
        own_tensors, own_scores = self.outcome("own")
        compare_tensors(own_tensors, tensors)
        if own_scores != scores:
            raise Failure(f"the scores {own_scores} are not {scores}")
        left = [str(path.relative_to(self.folder)) for path in (self.folder / "own").rglob(".*.tmp")]
        left += [path.name for path in (self.folder / "tmp").iterdir()]
        if left:
            raise Failure(f"temporary files are left: {left[:3]}")

    def next_command(self, way):
        if not self.started():
            return [*words_of(way), "--out", "own"]
        return ["train", "--resume", "own", "--threads", 1, "--quiet", "--mask-pictures", 1]


def add_options(parser):
    parser.add_argument("--way", choices=list(WAYS), help="this way to train alone")


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], Kills, add_options))
