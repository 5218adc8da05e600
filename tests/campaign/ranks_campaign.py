# SPDX-License-Identifier: Apache-2.0
"""Random training on ranks, whose whole checkpoints must keep what each strategy promises.

A trial draws a strategy with everything that may change no bit of it (transport, overlap, threads, an interruption)
and what is trained, and compares every tensor of the checkpoint (parameters, moments, running statistics, losses) with
that of the plain run which has the same bits by docs/guides/train-on-ranks.md; or draws options that must be refused.

Options: campaign.py. 1,000 trials take two minutes of processor time.
"""
import array
import dataclasses
import shutil
import sys

from campaign import Campaign, Failure, compare_tensors, main, read_checkpoint

STATISTICS = ("running_mean", "running_var")
TOLERANCE = 0.02  # of a loss where bits are not promised
WITH_MPI = True


@dataclasses.dataclass(frozen=True)
class Training:
    """Experiment that is trained: two runs of it differ in how alone."""
    model: tuple
    contract: str
    batch: int
    steps: int
    options: tuple

    def arguments(self):
        return [*self.model, "--contract", self.contract, "--batch", self.batch, "--validation", 0,
                "--mask-pictures", 0, *self.options]


@dataclasses.dataclass(frozen=True)
class Ranks:
    """How it is trained."""
    strategy: str = "dp"
    ranks: int = 1
    mesh: str = ""
    order: str = "rank-ordered"
    shards: int = 0
    transport: str = "threads"
    interconnect: str = ""
    overlap: bool = False
    threads: int = 1
    memory_limit: int = 0

    def arguments(self):
        words = ["--strategy", self.strategy, "--order", self.order, "--transport", self.transport]
        if self.transport != "mpi":
            words += ["--ranks", self.ranks]
        for name in ("mesh", "shards", "interconnect", "threads", "memory_limit"):
            if getattr(self, name):
                words += ["--" + name.replace("_", "-"), getattr(self, name)]
        return words + ["--overlap"] * self.overlap

    def plain(self):
        return Ranks(self.strategy, self.ranks, self.mesh, self.order, self.shards)


@dataclasses.dataclass(frozen=True)
class Promise:
    """`candidate` has the bits of `reference`, but for the tensors whose names end so; `near`: its losses alone, and
    near those, the first one to the bit where the contract is exact."""
    candidate: Ranks
    reference: Ranks
    but: tuple = ()
    near: bool = False


def draw_training(draw, least, contracts=("f32", "bf16-exact", "bf16-exact", "bf16")):
    """Its batch is a multiple of `least`."""
    model = draw.choice([("--model", "unet-s", "--base", 2, "--depth", 1, "--size", 16)] * 3 +
                        [("--model", "unet-s", "--base", 4, "--depth", 2, "--size", 16),
                         ("--model", "cnn", "--base", 4, "--depth", 2, "--size", 16),
                         ("--model", "mlp", "--base", 4, "--depth", 2, "--size", 16)])
    options = ["--seed", draw.randrange(3)]
    for name, values in {"synthetic-images": [5, 9],
                         "optimizer": ["adam", "adam", "adamw", "sgd"],
                         "loss": ["cross-entropy", "cross-entropy", "dice"],
                         "augmentation": ["flips", "flips", "none", "all"],
                         "drawing": ["epochs", "epochs", "replacement"],
                         "schedule": ["constant", "constant", "cosine"]}.items():
        options += ["--" + name, draw.choice(values)]
    if "cosine" in options:
        options += ["--schedule-steps", 5]
    batch = least * draw.choice([1, 1, 2, 3]) if least < 8 else least
    return Training(model, draw.choice(contracts), batch, draw.choice([2, 2, 3]), tuple(options))


def draw_promise(draw):
    """A promise, and a divisor of the batch."""
    ranks = draw.choice([2, 2, 3, 4])
    order = draw.choice(["rank-ordered", "ring"])
    kind = draw.choice(["dp", "zero", "layers", "pipeline", "tp", "one-loss", "ps-sync", "central", "shards", "shards",
                        "ddp2d", "pipelines", "tp2d", "local-sgd"])
    if kind == "dp":
        same = Ranks("dp", ranks, order=draw.choice([order, "shard-tree"]) if ranks != 3 else order)
        return Promise(same, same), ranks
    if kind == "zero":
        own = Ranks(f"zero{draw.randint(1, 3)}", ranks, order=order)
        # Where a ring begins depends on its chunks, which are other ones; two terms have one order.
        return Promise(own, Ranks("dp", ranks) if order != "ring" or ranks == 2 else own), ranks
    if kind == "layers":
        return Promise(Ranks("layers", draw.choice([2, 2, 3, 4, 8])), Ranks()), 1
    if kind in ("pipeline", "pipelines"):
        micro = draw.choice([2, 3, 4]) if kind == "pipeline" else 2
        schedule = draw.choice(["", ",gpipe"])
        if kind == "pipelines":
            return Promise(Ranks(f"pipeline:2{schedule}", 4, "dp=2,pp=2", "shard-tree"),
                           Ranks("dp", 4, order="shard-tree"), STATISTICS), 4
        own = Ranks(f"pipeline:{micro}{schedule}", draw.choice([1, 2, 2, 3, 4]))
        return Promise(own, Ranks("dp", micro), STATISTICS), micro
    if kind == "tp":
        own = Ranks("tp", draw.choice([2, 2, 4]), order=order)
        return Promise(own, own), 1
    if kind == "one-loss":
        return Promise(Ranks("tp", draw.choice([2, 2, 4])), Ranks(), near=True), 1
    if kind == "tp2d":
        own = Ranks("tp", 4, "dp=2,tp=2", order)
        return Promise(own, own), 2
    if kind == "ddp2d":
        nodes, devices = draw.choice([(2, 2), (2, 2), (2, 1), (1, 2), (4, 1)])
        ranks = nodes * devices
        return Promise(Ranks("ddp2d", ranks, f"node={nodes},device={devices}"),
                       Ranks("dp", ranks, order="rank-ordered" if 1 in (nodes, devices) else "shard-tree")), ranks
    if kind == "ps-sync":
        return Promise(Ranks("ps-sync", ranks), Ranks("dp", ranks)), ranks
    if kind == "central":
        return Promise(Ranks("central", ranks), Ranks("dp", ranks - 1)), ranks - 1
    if kind == "shards":
        shards = draw.choice([2, 4, 4])
        own = Ranks("dp", draw.choice([n for n in (1, 2, 4) if n <= shards]), order="shard-tree", shards=shards)
        return Promise(own, dataclasses.replace(own, ranks=1)), shards
    own = Ranks(f"local-sgd:{draw.choice([1, 2])}", ranks)
    return Promise(own, own), ranks


def disguise(draw, ranks):
    """The same to the bit: another transport, overlap, threads, a memory limit."""
    transport = draw.choice(["threads", "threads", "threads", "simulated", "simulated", "mpi"])
    if ranks.ranks == 1 or (transport == "mpi" and not WITH_MPI):
        transport = "threads"
    interconnects = ["ring", "switch", "pcie:2"] + ["torus:2x2"] * (ranks.ranks == 4)
    return dataclasses.replace(
        ranks, transport=transport, interconnect=draw.choice(interconnects) if transport == "simulated" else "",
        overlap=draw.random() < 0.5 and ranks.ranks > 1,
        threads=draw.choice([1, 1, 2]) if transport == "threads" else 1, memory_limit=draw.choice([0, 0, 0, 1]))


def draw_refusal(draw):
    """Options that must be refused, and the training."""
    t = draw_training(draw, 4)
    odd = dataclasses.replace(t, batch=5)
    mesh = draw.choice(["dp=2,pp=2", "dp=2,tp=1", "node=2,device=3", "tp=4", "dp=0,pp=4"])
    return draw.choice([
        (odd, Ranks("dp", 2)), (odd, Ranks("zero2", 2)), (odd, Ranks("ps-sync", 2)), (odd, Ranks("central", 3)),
        (odd, Ranks("pipeline:2", 2)), (odd, Ranks("ps-async", 3)), (odd, Ranks("local-sgd:2", 4)),
        (odd, Ranks("tp", 4, "dp=2,tp=2")), (odd, Ranks("dp", 2, order="shard-tree", shards=4)),
        (t, Ranks(draw.choice(["zero1", "zero2", "zero3", "tp"]), 2, order="shard-tree")),
        (t, Ranks("ddp2d", 2, mesh)), (t, Ranks("dp", 2, mesh)), (t, Ranks("tp", 2, "dp=2,pp=2")),
        (t, Ranks("pipeline:2", 3, "dp=2,pp=2")), (t, Ranks("ddp2d", 2)),
        (t, Ranks("dp", 2, order="shard-tree", shards=3)), (t, Ranks("dp", 4, order="shard-tree", shards=2)),
        (t, Ranks("dp", 2, order="rank-ordered", shards=4)), (t, Ranks("zero1", 2, order="shard-tree", shards=4)),
        (t, Ranks("dp", 2, transport="simulated", interconnect=draw.choice(["torus:3x2", "pcie:0", "star"]))),
        (t, Ranks("dp", 2, transport="simulated", threads=2)),
        (t, Ranks(draw.choice(["pipeline:0", "pipeline:2,round", "local-sgd:", "zero4", "ps-async:0", "layers:2"]), 2)),
    ])


class RanksCampaign(Campaign):
    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.references = {}

    def command(self, ranks, *words):
        """Options of a run in the folder of the trial."""
        launch = ["launch", "-n", ranks.ranks] if ranks.transport == "mpi" else []
        return [*launch, "train", *words]

    def new_run(self, training, ranks, steps, name, further=()):
        return self.command(ranks, *training.arguments(), *ranks.arguments(), *further, "--steps", steps, "--out", name)

    def run(self, words, code=0):
        done = self.execute(words)
        if done.code != code:
            last = done.said.strip().splitlines()[-3:]
            raise Failure(f"exit code {done.code}, {code} expected: " + " | ".join(last))

    def train(self, training, ranks, name, split=None, further=(), resumed=None):
        """Trains into the folder `name`; with `split` in two runs, the second one as `resumed`."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        steps = training.steps if split is None else split
        self.run(self.new_run(training, ranks, steps, name, further))
        if split is not None:
            self.run(self.command(resumed, "--resume", name, *resumed.arguments(), *further, "--steps", training.steps,
                                  "--mask-pictures", 0))
        return read_checkpoint(self.folder / name)

    def reference(self, training, ranks):
        """Of a run that all trials share which need it."""
        key = (training, ranks)
        if key not in self.references:
            self.references[key] = self.train(training, ranks, "reference")
        else:
            self.commands.append([self.program, *map(str, self.new_run(training, ranks, training.steps, "reference"))])
        return self.references[key]

    def compare_losses(self, own, other, exact):
        losses = [array.array("f", tensors["run.losses"][2]) for tensors in (own, other)]
        if exact and losses[0][0] != losses[1][0]:
            raise Failure(f"the first loss is {losses[0][0]}, not {losses[1][0]}")
        if any(abs(a - b) > TOLERANCE for a, b in zip(*losses)):
            raise Failure(f"the losses {list(losses[0])} are not near {list(losses[1])}")

    def refusal(self, draw):
        training, ranks = draw_refusal(draw)
        self.run(self.new_run(training, ranks, 1, "own"), code=2)
        if (self.folder / "own").exists():
            raise Failure("it was refused, but its folder was made")

    def replay(self, draw):
        """The recorded order of updates gives the same bits; one worker has those of one rank."""
        ranks = draw.choice([2, 3, 4])
        strategy = draw.choice(["ps-async", "ps-async:1", "local-sgd-async:1", "local-sgd-async:2,1"])
        training = draw_training(draw, ranks - 1)
        recorded = self.train(training, disguise(draw, Ranks(strategy, ranks)), "recorded")
        again = disguise(draw, Ranks(strategy, ranks))
        compare_tensors(self.train(training, again, "own", further=["--replay", "recorded"]), recorded)
        if ranks == 2 and strategy.startswith("ps-async"):
            recorded.pop("run.updates")
            compare_tensors(recorded, self.reference(training, Ranks()))

    def equality(self, draw):
        promise, least = draw_promise(draw)
        training = draw_training(draw, least)
        own = disguise(draw, promise.candidate)
        split = draw.randrange(1, training.steps) if draw.random() < 0.3 else None
        if own.strategy.startswith("local-sgd"):
            split = None  # its end is an average, which the whole run does not have there
        resumed = own
        if split is not None:
            others = [n for n in (1, 2, 4) if n <= own.shards] or [own.ranks]
            resumed = disguise(draw, dataclasses.replace(promise.candidate, ranks=draw.choice(others)))
        checkpoint = self.train(training, own, "own", split, resumed=resumed)
        reference = self.reference(training, promise.reference)
        if promise.near:
            self.compare_losses(checkpoint, reference, training.contract == "bf16-exact")
        else:
            compare_tensors(checkpoint, reference, promise.but)

    def attempt(self, draw, number):
        kind = draw.choices([self.equality, self.refusal, self.replay], [80, 10, 10])[0]
        for name in ("own", "recorded"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        kind(draw)


def make(program, folder, arguments):
    global WITH_MPI
    WITH_MPI = not arguments.without_mpi
    return RanksCampaign(program, folder)


def add_options(parser):
    parser.add_argument("--without-mpi", action="store_true", help="threads in the place of processes")


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], make, add_options))
