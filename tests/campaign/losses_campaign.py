# SPDX-License-Identifier: Apache-2.0
"""Random losses on shares of a batch: checkpoints must be near those of one rank with the whole batch.

A trial draws a network without batch normalisation, a loss, ignored or weighted targets, a strategy, ranks and
micro-batches. It compares each tensor of the checkpoint (parameters, moments, losses) with the reference. The limit is
a fraction of the distance that training moved that tensor, so that a wrongly scaled gradient fails.

Options: campaign.py. 1,000 trials take three minutes of processor time.
"""
import array
import dataclasses
import pathlib
import random
import shutil
import sys

from campaign import Failure, main, read_checkpoint
from ranks_campaign import Ranks, RanksCampaign, Training, add_options, disguise
import ranks_campaign

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from onnx_files import INT64, integer, model, node, save_npy, tensor, value_info
from support import GREY, png_bytes

ROWS = 24
CLASSES = 3
NEAR = 2e-4  # fraction of the largest change of a tensor. The order of sums changes 1e-6 of it


@dataclasses.dataclass(frozen=True)
class LossTraining(Training):
    def arguments(self):
        words = [*self.model, "--contract", self.contract, "--batch", self.batch, "--validation", 0, *self.options]
        return words + ["--mask-pictures", 0] * ("--size" in words)


def weights(name, shape, seed):
    size = 1
    for n in shape:
        size *= n
    noise = random.Random(f"{name} {seed}")
    return tensor(name, shape, [noise.uniform(-0.6, 0.6) for _ in range(size)])


def tokens(tied):
    """Classes of five tokens. If tied, the table of words is also the last layer."""
    classes = 7 if tied else CLASSES
    last = ([node("Transpose", ["words"], ["head"])] if tied else [])
    return model([node("Gather", ["words", "ids"], ["e"]), node("MatMul", ["e", "w"], ["m"]), node("Tanh", ["m"], ["t"]),
                  *last, node("MatMul", ["t", "head"], ["logits"])],
                 [value_info("ids", ["batch", 5], INT64)], [value_info("logits", ["batch", 5, classes])],
                 [weights("words", [7, 4], 1), weights("w", [4, 4], 2)] +
                 ([] if tied else [weights("head", [4, CLASSES], 3)]))


def maps(classes, gated=False):
    """A class of each pixel. If gated, a layer without gradients masks pixels."""
    gate = [node("Conv", ["image", "g"], ["gate"]), node("Greater", ["gate", "zero"], ["seen"]),
            node("Cast", ["seen"], ["mask"], integer("to", 1)), node("Mul", ["r", "mask"], ["h"])] if gated else []
    return model([node("Conv", ["image", "w"], ["c"]), node("Relu", ["c"], ["r"]), *gate,
                  node("Conv", ["h" if gated else "r", "head"], ["logits"])],
                 [value_info("image", ["batch", 1, "height", "width"])],
                 [value_info("logits", ["batch", classes, "height", "width"])],
                 [weights("w", [4, 1, 1, 1], 4), weights("head", [classes, 4, 1, 1], 5)] +
                 ([weights("g", [4, 1, 1, 1], 6), tensor("zero", [], [0.0])] if gated else []))


def write_data(folder):
    """Networks and arrays. A row has no label that counts, a few, or all."""
    for name, data in {"tokens": tokens(False), "tied": tokens(True), "maps1": maps(1), "maps3": maps(3),
                       "gated": maps(3, True)}.items():
        (folder / f"{name}.onnx").write_bytes(data)
    noise = random.Random(7)
    write_pictures(folder / "pictures")
    save_npy(folder / "ids.npy", (ROWS, 5), [noise.randrange(7) for _ in range(5 * ROWS)], "<i8")
    save_npy(folder / "image.npy", (ROWS, 1, 6, 6), [noise.uniform(-1, 1) for _ in range(36 * ROWS)])
    for name, size in {"tokens": 5, "maps": 36}.items():
        for kept in ("all", "some"):
            labels = []
            for _ in range(ROWS):
                share = 1 if kept == "all" else noise.choice([0, 0.2, 0.5, 1])
                labels += [noise.randrange(CLASSES) if noise.random() < share else -100 for _ in range(size)]
            save_npy(folder / f"{name}_{kept}.npy", (ROWS, 5) if size == 5 else (ROWS, 6, 6), labels, "<i8")


def write_pictures(folder):
    """Pictures with masks of three classes, of which 255 is ignored: in some nearly everywhere."""
    noise = random.Random(8)
    for place in ("images", "masks"):
        (folder / place).mkdir(parents=True)
    for i in range(ROWS):
        share = noise.choice([0.05, 0.5, 1])
        (folder / "images" / f"{i:02}.png").write_bytes(
            png_bytes(16, 16, GREY, 8, lambda x, y, c: noise.randrange(256)))
        (folder / "masks" / f"{i:02}.png").write_bytes(
            png_bytes(16, 16, GREY, 8, lambda x, y, c: noise.randrange(CLASSES) if noise.random() < share else 255))


def draw_options(draw):
    """A model, its data and a loss that fits."""
    name = draw.choice(["tokens", "tokens", "tied", "maps3", "maps1", "gated"])
    if name in ("tokens", "tied"):
        return ["--model", f"{name}.onnx", "--input", "ids.npy", "--target",
                f"tokens_{draw.choice(['all', 'some', 'some'])}.npy"]
    if name != "maps1" and draw.random() < 0.5:
        return ["--model", f"{name}.onnx", "--input", "image.npy", "--target",
                f"maps_{draw.choice(['all', 'some'])}.npy"]
    data = ["--synthetic-images", ROWS]
    if name != "maps1":
        data = ["--data", "pictures", "--labels", "0,1,2", "--ignore-label", 255]
    weighted = draw.choice([[], ["--border-weight", 5], ["--class-weights", "balanced"]])
    return ["--model", f"{name}.onnx", "--size", 16, *data, *weighted,
            "--loss", draw.choice(["cross-entropy", "dice", "dice-cross-entropy"]),
            "--augmentation", draw.choice(["none", "flips"])]


def draw_sharing(draw):
    """A strategy, micro-batches of each rank, and a number that must divide the batch."""
    ranks = draw.choice([2, 2, 3, 4])
    order = draw.choice(["rank-ordered", "ring"])
    kind = draw.choice(["dp", "dp", "alone", "zero", "server", "central", "pipeline", "layers", "pipelines", "ddp2d", "tp2d",
                        "shards"])
    accumulate = draw.choice([1, 2, 3])
    if kind == "dp":
        return Ranks("dp", ranks, order=order), accumulate, ranks * accumulate
    if kind == "alone":
        return Ranks(), accumulate + 1, accumulate + 1
    if kind == "zero":
        return Ranks(f"zero{draw.randint(1, 3)}", ranks, order=order), 1, ranks
    if kind == "server":
        return Ranks("ps-sync", ranks), 1, ranks
    if kind == "central":
        return Ranks("central", ranks), 1, ranks - 1
    if kind == "layers":
        return Ranks("layers", draw.choice([2, 3])), 1, 1
    if kind == "pipeline":
        micro = draw.choice([2, 3, 4])
        return Ranks(f"pipeline:{micro}{draw.choice(['', ',gpipe'])}", draw.choice([1, 2, 2, 3])), 1, micro
    if kind == "pipelines":
        return Ranks(draw.choice(["layers", "pipeline:2"]), 4, "dp=2,pp=2"), 1, 4
    if kind == "ddp2d":
        return Ranks("ddp2d", 4, "node=2,device=2"), accumulate, 4 * accumulate
    if kind == "tp2d":
        return Ranks("tp", 4, "dp=2,tp=2", order), 1, 2
    return Ranks("dp", draw.choice([1, 2, 4]), order="shard-tree", shards=4), draw.choice([1, 2]), 8


def numbers(tensors, name):
    dtype, _, data = tensors[name]
    return array.array("f", data) if dtype == "F32" else None


def compare(own, other, start):
    """`start`: a checkpoint with the first parameters."""
    if own.keys() != other.keys():
        raise Failure(f"other tensors: {sorted(own.keys() ^ other.keys())}")
    wrong = []
    for name in own:
        values, wanted = numbers(own, name), numbers(other, name)
        if values is None or len(values) != len(wanted):
            if own[name] != other[name]:
                wrong.append(name)
            continue
        before = None if name.startswith(("run.", "optimizer.")) else numbers(start, name)
        moved = max((abs(a - b) for a, b in zip(wanted, before or [0] * len(wanted))), default=0)
        apart = max((abs(a - b) for a, b in zip(values, wanted)), default=0)
        rounding = 1e-6 * max((abs(a) for a in wanted), default=0)
        if not apart <= NEAR * moved + rounding + 1e-9:
            wrong.append(f"{name} by {apart:.3g} of {moved:.3g}")
    if wrong:
        raise Failure(f"{len(wrong)} of {len(own)} tensors differ: {', '.join(sorted(wrong)[:6])}")


class LossesCampaign(RanksCampaign):
    def __init__(self, program, folder):
        super().__init__(program, folder)
        write_data(self.folder)

    def attempt(self, draw, number):
        shutil.rmtree(self.folder / "own", ignore_errors=True)
        ranks, accumulate, least = draw_sharing(draw)
        batch = least * draw.choice([n for n in (1, 2, 3) if n * least <= ROWS])
        model, *options = draw_options(draw)
        options += ["--optimizer", "sgd", "--momentum", draw.choice([0, 0.9]), "--lr", 0.2, "--seed", draw.randrange(3)]
        training = LossTraining((model, options[0]), "f32", batch, draw.choice([1, 2, 3]), tuple(options[1:]))
        still = [1e-9 if before == "--lr" else option for before, option in zip([None, *options], options)]
        start = self.reference(dataclasses.replace(training, steps=1, options=tuple(still[1:])), Ranks())
        reference = self.reference(training, Ranks())
        own = self.train(training, disguise(draw, ranks), "own", further=["--accumulate", accumulate])
        compare(own, reference, start)


def make(program, folder, arguments):
    ranks_campaign.WITH_MPI = not arguments.without_mpi
    return LossesCampaign(program, folder)


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], make, add_options))
