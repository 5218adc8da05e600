# SPDX-License-Identifier: Apache-2.0
"""Runs the commands and four long processes for minutes. Fails when memory, descriptors or files grow.

    soak_test.py PROGRAM SOURCE_DIR [--minutes 60] [--module FOLDER]

One round runs each command once. Between two commands the soak samples every process and directory. The growth of
a series is its Theil-Sen slope (the median of all pairwise slopes) times the length of the second half, so that
warming up and short peaks do not count. Each series has a bound. At the end nothing may be left in /tmp, /dev/shm
and TMPDIR, and no process may live.

As root, /tmp and /dev/shm are empty directories of the soak's own mount namespace. Without that privilege the soak
counts the user's files that appeared there since the start.
FOLDER holds the Python module. Without it, no Python processes run.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
#: Largest growth over the second half.
BOUNDS = {"MiB": 2.0, "descriptors": 0.5, "threads": 0.5, "files": 0.5, "processes": 0.5, "KiB": 64.0}
#: Bytes that a training keeps for each step, in memory and in its directory: each checkpoint has all losses.
MEMORY_PER_STEP, FILES_PER_STEP = 64, 128
SECONDS_PER_COMMAND = 600  # limit for a command, after which it counts as hanging
MARK = "TRIPTYCH_SOAK"  # in the environment of every process of the soak
ISOLATED = "TRIPTYCH_SOAK_ISOLATED"
SHARED_PLACES = ("/tmp", "/dev/shm")

TINY = ["--model", "unet-s", "--base", "2", "--depth", "1", "--size", "16", "--batch", "2", "--mask-pictures", "1",
        "--threads", "1", "--quiet", "--data", "data"]
KERNEL = """__global__ void scale(const float* x, float* y, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}
"""
ENDLESS = ["--steps", "1000000000", "--steps-per-epoch", "1000"]


class Failure(Exception):
    pass


@dataclasses.dataclass
class Series:
    """Samples of one quantity: (seconds, value)."""
    name: str
    unit: str
    allowance: float = 0.0  # documented data in addition to the bound
    samples: list = dataclasses.field(default_factory=list)

    def growth(self):
        """Growth over the second half by the Theil-Sen slope, or 0 of fewer than eight samples there."""
        if not self.samples:
            return 0.0
        middle = (self.samples[0][0] + self.samples[-1][0]) / 2
        half = [sample for sample in self.samples if sample[0] >= middle]
        if len(half) < 8:
            return 0.0
        step = -(-len(half) // 600)  # limits the number of pairs
        half = half[::step]
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(half) for b in half[i + 1:] if b[0] > a[0]]
        return statistics.median(slopes) * (half[-1][0] - half[0][0])

    def bound(self):
        return BOUNDS[self.unit] + self.allowance

    def grows(self):
        return self.growth() > self.bound()

    def line(self):
        values = [value for _, value in self.samples]
        return (f"{self.name:44} {self.unit:11} {len(values):5} samples  first {values[0]:9.1f}  last {values[-1]:9.1f}"
                f"  growth {self.growth():8.2f}  bound {self.bound():6.2f}{'  GROWS' if self.grows() else ''}")


def files_below(folder):
    """(number, bytes) of everything below, without entries that disappear meanwhile."""
    count = size = 0
    for path in pathlib.Path(folder).rglob("*"):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        count += 1
        size += status.st_size if not path.is_dir() else 0
    return count, size


def own_names(place):
    """Names of the user's entries in a directory."""
    names = set()
    for entry in os.scandir(place):
        try:
            if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                names.add(entry.name)
        except FileNotFoundError:
            pass
    return names


def marked_processes(mark):
    """Ids of the processes with the mark in their environment."""
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.add(int(entry.name))
        except OSError:
            pass
    return found


def status_of(pid):
    """MiB of anonymous memory, descriptors and threads of a process."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return {"MiB": int(fields["RssAnon"].split()[0]) / 1024, "threads": int(fields["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


class Soak:
    def __init__(self, arguments, root):
        self.program, self.source = os.path.abspath(arguments.program), pathlib.Path(arguments.source).resolve()
        self.module, self.root = arguments.module and os.path.abspath(arguments.module), pathlib.Path(root)
        self.work = self.root / "work"
        self.mark = str(os.getpid())
        self.series = {}
        self.long = {}  # name: process
        self.steps = {}  # name: directory of the run
        self.rounds = 0
        self.environment = {**os.environ, MARK: self.mark, "OMP_NUM_THREADS": "1"}
        for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR"):
            folder = self.root / name.lower()
            folder.mkdir()
            self.environment[name] = str(folder)
        self.work.mkdir()
        self.places = {place: own_names(place) for place in SHARED_PLACES if os.path.isdir(place)}
        for name in ("python", "long"):
            (self.root / name).mkdir()
        self.started = time.monotonic()

    def sample(self, name, unit, value):
        series = self.series.setdefault((name, unit), Series(name, unit))
        series.samples.append((time.monotonic() - self.started, value))

    # Commands

    def command(self, name, *words, codes=(0,)):
        """Runs a command to its end and samples its largest memory."""
        log = self.root / "log"
        with open(log, "wb") as output:
            process = subprocess.Popen([self.program, *map(str, words)], cwd=self.work, env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        deadline = time.monotonic() + SECONDS_PER_COMMAND
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                process.kill()
                raise Failure(f"{name} hangs: not done after {SECONDS_PER_COMMAND} s")
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            raise Failure(f"{name}: exit code {process.returncode}\n{log.read_text(errors='replace')[-2000:]}")
        self.sample(f"largest memory of {name}", "MiB", usage.ru_maxrss / 1024)
        self.sample_all()

    def prepare(self):
        (self.work / "scale.cu").write_text(KERNEL)
        self.command("synthesize", "synthesize", "--images", 4, "--size", 32, "--out", "data")
        for number, name in ((6, "6-cuda"), (7, "7-bandwidth")):
            self.command(f"lab start {number}", "lab", "start", number, "--out", f"lab{number}")
            solution = self.source / "tests" / "labs" / "solutions" / name
            shutil.copytree(solution, self.work / f"lab{number}", dirs_exist_ok=True)
        self.series.clear()

    def round(self):
        """Each command once, into the files of the round before."""
        for run in ("run", "launched"):
            shutil.rmtree(self.work / run, ignore_errors=True)
        self.command("train", "train", *TINY, "--steps", 6, "--checkpoint-every", 1, "--out", "run")
        self.command("train --resume", "train", "--resume", "run", "--steps", 12, "--threads", 1, "--quiet")
        self.command("run", "run", "run", "--input", "data/images", "--out", "masks", "--threads", 1)
        self.command("evaluate", "evaluate", "run", "--data", "data", "--out", "scores", "--threads", 1)
        self.command("export", "export", "run", "--out", "model.onnx")
        self.command("compare", "compare", *TINY, "--epochs", 1, "--steps-per-epoch", 2, "--backends", "cpu,systolic",
                     "--figures", "i9-9900k", "--out", "compare.html")
        self.command("launch", "launch", "-n", 2, "train", *TINY, "--transport", "mpi", "--steps", 4,
                     "--out", "launched", codes=(0, 3, 4))
        self.command("kernel run", "kernel", "run", "scale.cu", "f32:64", "f32:64", "0.5", "64", "--grid", 1,
                     "--block", 64, "--out", "y.npy")
        for number in (6, 7):
            self.command(f"lab check {number}", "lab", "check", number, f"lab{number}", "--without-predictions",
                         "--results", f"lab{number}.json", codes=(0, 1))
        self.rounds += 1

    # Long processes

    def start(self, name, command, **environment):
        log = open(self.root / f"{name}.log", "wb")
        folder = self.work if name in self.steps else self.root / "python"
        self.long[name] = subprocess.Popen(list(map(str, command)), cwd=folder, stdin=subprocess.DEVNULL, stdout=log,
                                           stderr=log, env={**self.environment, **environment})
        log.close()

    def start_training(self, name, *options):
        self.steps[name] = self.root / "long" / name
        self.start(name, [self.program, "train", *TINY, *ENDLESS, *options, "--out", self.steps[name]])

    def start_all(self):
        self.start_training("long-training", "--checkpoint-every", 1)
        self.start_training("long-ranks", "--ranks", 2, "--strategy", "zero1", "--overlap", "--checkpoint-every", 100)
        if self.module:
            for part in ("plans", "runs"):
                self.start(f"python-{part}", [sys.executable, "-B", __file__, "--worker", part], PYTHONPATH=self.module)

    def sample_all(self):
        for name, process in self.long.items():
            if process.poll() is not None:
                said = (self.root / f"{name}.log").read_text(errors="replace")[-2000:]
                raise Failure(f"{name} ended early with {process.returncode}\n{said}")
            report = self.root / "python" / f"{name}.json"
            for unit, value in (status_of(process.pid) if name in self.steps else
                                json.loads(report.read_text()) if report.exists() else {}).items():
                self.sample(name, unit, value)
        for name in ("work", "long", "home", "xdg_cache_home", "tmpdir"):
            count, size = files_below(self.root / name)
            self.sample(f"files in {name}", "files", count)
            self.sample(f"size of {name}", "KiB", size / 1024)
        for place, names in self.new_names().items():
            self.sample(f"new in {place}", "files", len(names))
        self.sample("processes", "processes", len(marked_processes(self.mark)))

    def new_names(self):
        """New names in the shared places, except the soak's own directory."""
        return {place: own_names(place) - before - {self.root.name} for place, before in self.places.items()}

    def stop_all(self):
        """Interrupts the long processes, which save and end by themselves."""
        wrong = []
        for name, process in self.long.items():
            process.send_signal(signal.SIGTERM if name in self.steps else signal.SIGINT)
        for name, process in self.long.items():
            try:
                code = process.wait(timeout=SECONDS_PER_COMMAND)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            due = 130 if name in self.steps else 0
            if code != due:
                said = (self.root / f"{name}.log").read_text(errors="replace")[-2000:]
                wrong.append(f"{name}: exit code {code} after an interruption, {due} expected\n{said}")
        return wrong

    def allow_for_losses(self):
        """Adds the documented data of the long trainings to the bounds of their memory and directories."""
        total = 0
        for name, folder in self.steps.items():
            losses = folder / "losses.csv"
            steps = len(losses.read_text().splitlines()) if losses.exists() else 0
            print(f"{name}: {steps} steps")
            total += steps
            if (name, "MiB") in self.series:
                self.series[name, "MiB"].allowance = steps / 2 * MEMORY_PER_STEP / MIB
        if ("size of long", "KiB") in self.series:
            self.series["size of long", "KiB"].allowance = total / 2 * FILES_PER_STEP / 1024

    def left_over(self):
        wrong = [f"left in {place}: {sorted(names)[:5]}" for place, names in self.new_names().items()
                 if names and (os.environ.get(ISOLATED) or any(name.startswith("triptych-") for name in names))]
        left = sorted(path.name for path in (self.root / "tmpdir").iterdir())
        if left:
            wrong.append(f"left in TMPDIR: {left[:5]}")
        alive = marked_processes(self.mark)
        if alive:
            wrong.append(f"processes that still live: {sorted(alive)[:5]}")
        return wrong

    def run(self, minutes):
        """Failures, a line each."""
        wrong = []
        try:
            self.prepare()
            self.start_all()
            end = time.monotonic() + 60 * minutes
            while time.monotonic() < end:
                self.round()
        except Failure as failure:
            wrong.append(str(failure))
        finally:
            stopped = self.stop_all()
        wrong = wrong or stopped
        self.allow_for_losses()
        for series in self.series.values():
            print(series.line())
        wrong += [f"grows: {series.name}, {series.unit}" for series in self.series.values() if series.grows()]
        return wrong + self.left_over()


# Processes with the Python module


def plan_once(triptych, numpy, backend, number):
    """A graph, its gradients and its plan, made, run and dropped."""
    with triptych.Graph() as graph:
        x = graph.input("x", (2, 1, 8, 8))
        w = graph.parameter("w", numpy.full((2, 1, 3, 3), 0.1, numpy.float32))
        y = triptych.ops.relu(triptych.ops.conv(x, w, pads=[1, 1, 1, 1]))
        loss = triptych.ops.reduce_mean(y * y, keepdims=False)
    plan = graph.train(loss, "adam").plan(backend, "bf16-exact", threads=1)
    picture = numpy.full((2, 1, 8, 8), number % 7, numpy.float32)
    plan.run(x=picture, learning_rate=numpy.float32(0.01))
    return plan.states


def work_on_plans(triptych, numpy, number):
    plan_once(triptych, numpy, ("cpu", "cuda-emulated", "systolic")[number % 3], number)
    x = numpy.ones((1, 1 + number % 3, 8, 8), numpy.float32)
    triptych.ops.relu(x, backend="cpu")
    machine = triptych.Machine("mmu4")
    machine.write(0, numpy.ones((4, 4)))
    machine.run("halt")


def work_on_runs(triptych, numpy, number):
    """A run that trains, predicts and is resumed. Every fiftieth time also a comparison."""
    images = numpy.random.default_rng(1).random((4, 32, 32), numpy.float32)
    model = {"name": "unet-s", "base": 2, "depth": 1, "size": 16}
    shutil.rmtree("run", ignore_errors=True)
    run = triptych.Trainer(model, (images, images > 0.5), out="run", batch=2, steps=4, machine={"threads": 1},
                           progress=False)
    run.train().predict(images[:1])
    del run
    run = triptych.Trainer.resume("run", (images, images > 0.5), steps=6, progress=False)
    run.train()
    del run
    if number % 50 == 0:
        triptych.compare(model, backends=["cpu", "systolic"], epochs=1, steps_per_epoch=2, batch=2, progress=False)


def worker(part):
    """Repeats the work until an interrupt, and reports its resources for the soak after each round."""
    import numpy
    import triptych
    signal.signal(signal.SIGINT, signal.default_int_handler)
    work = {"plans": work_on_plans, "runs": work_on_runs}[part]
    report = pathlib.Path(f"python-{part}.json")
    try:
        for number in range(1 << 40):
            work(triptych, numpy, number)
            report.with_suffix(".new").write_text(json.dumps(status_of("self")))
            report.with_suffix(".new").replace(report)
    except KeyboardInterrupt:
        print(f"{number} rounds")
    return 0


def isolate(arguments):
    """Starts this file again in a mount namespace with an empty /tmp and /dev/shm, where that is allowed."""
    paths = [arguments.program, arguments.source, arguments.module or "/", __file__, tempfile.gettempdir()]
    below = any(os.path.abspath(path).startswith("/tmp/") for path in paths[:-1])
    mounts = " && ".join(f"mount -t tmpfs -o mode=1777 soak {place}" for place in SHARED_PLACES)
    if below or os.environ.get(ISOLATED) or not shutil.which("unshare"):
        return
    tried = subprocess.run(["unshare", "--mount", "sh", "-c", mounts], capture_output=True)
    if tried.returncode == 0:
        os.environ[ISOLATED] = "1"
        command = [sys.executable, "-B", *map(os.path.abspath, sys.argv[:1]), *sys.argv[1:]]
        os.execvp("unshare", ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh", *command])


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("source")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--module", help="folder with the Python module triptych")
    arguments = parser.parse_args()
    isolate(arguments)
    with tempfile.TemporaryDirectory(prefix="triptych-soak-", dir="/var/tmp") as root:
        os.chmod(root, 0o755)  # the labs' code runs as another user
        soak = Soak(arguments, root)
        wrong = soak.run(arguments.minutes)
    print(f"{soak.rounds} rounds in {time.monotonic() - soak.started:.0f} s, "
          f"{'/tmp and /dev/shm isolated' if os.environ.get(ISOLATED) else '/tmp and /dev/shm shared'}")
    for each in wrong:
        print("FAILED:", each)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
