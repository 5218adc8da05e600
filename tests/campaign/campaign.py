# SPDX-License-Identifier: Apache-2.0
"""Common part of the random campaigns: numbered trials, running the program, verdicts, the command that repeats one.

    CAMPAIGN.py PROGRAM --trials 1000 --seed 1      a trial is the same with the same seed and number
    CAMPAIGN.py PROGRAM --seed 1 --only 17          that one alone
    CAMPAIGN.py PROGRAM --trials 60 --part 0/2      every other one
    CAMPAIGN.py PROGRAM --only 17 --keep FOLDER     and leave its files in FOLDER
"""
import argparse
import dataclasses
import json
import os
import pathlib
import random
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 900  # limit for a run, after which it counts as hanging
DOCUMENTED = {0, 2, 3, 4, 5}  # exit codes of commands without a verdict
LONGEST_LINE = 8192 + 64  # of a message: its first 8192 bytes, "triptych: " and the number of the others
MIB = 1 << 20


class Failure(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Done:
    """A run of the program. Its code is negative when a signal ended it."""
    code: int
    said: str  # on standard error
    mib: float
    printed: str = ""


def read_checkpoint(folder):
    """The newest checkpoint's tensors: name to dtype, shape and bytes."""
    newest = max((folder / "checkpoint").glob("checkpoint-*.json"))
    data = (newest.parent / json.loads(newest.read_text())["file"]).read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if name != "run.epochs":  # times
            tensors[name] = (entry["dtype"], tuple(entry["shape"]), data[8 + size + begin:8 + size + end])
    return tensors


def compare_tensors(own, other, but=()):
    if own.keys() != other.keys():
        raise Failure(f"other tensors: {sorted(own.keys() ^ other.keys())}")
    wrong = [name for name in own if own[name] != other[name] and not name.endswith(but)]
    if wrong:
        raise Failure(f"{len(wrong)} of {len(own)} tensors differ: {', '.join(sorted(wrong)[:6])}")


class Campaign:
    """Runs the program in `folder`. A derived class draws and checks trials in attempt(draw, number)."""

    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        self.commands = []
        self.runs = 0

    def attempt(self, draw, number):
        """Raises a Failure with the reason."""
        raise NotImplementedError

    def trial(self, seed, number):
        """The reason for which the trial failed, or nothing."""
        self.commands = []
        shutil.rmtree(self.folder / "tmp", ignore_errors=True)
        (self.folder / "tmp").mkdir()
        try:
            self.attempt(random.Random(f"{seed} {number}"), number)
        except Failure as failure:
            return str(failure)
        return None

    def execute(self, words, kill_after=None, file_bytes=None):
        """Runs the program to its end, or kills it after so many seconds. Has its memory by the system's count."""
        command = [str(word) for word in (self.program, *words)]
        self.runs += 1
        self.commands.append(command)
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as printed:
            process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=printed, stderr=said,
                                       preexec_fn=lambda: limit_files(file_bytes))
            code, mib = wait(process, kill_after)
            texts = []
            for file in (said, printed):
                file.seek(0)
                texts.append(file.read(MIB).decode(errors="replace"))
            return Done(code, texts[0], mib, texts[1])

    def judge(self, done, codes=DOCUMENTED, most_mib=None):
        """For any input a command ends with a documented code and, after an error, a readable message."""
        last = done.said.strip()[-300:]
        if done.code < 0:
            raise Failure(f"ended by {signal.Signals(-done.code).name}: {last}")
        if done.code not in codes:
            raise Failure(f"exit code {done.code}, which is none of {sorted(codes)}: {last}")
        if done.code and not (done.said + done.printed).strip():
            raise Failure(f"exit code {done.code} without a message")
        longest = max(map(len, done.said.splitlines()), default=0)
        if longest > LONGEST_LINE:
            raise Failure(f"a line of {longest} characters: {done.said[:100]}")
        steering = [c for c in done.said + done.printed if ord(c) < 32 and c not in "\n\t" or 127 <= ord(c) < 160]
        if steering:
            raise Failure(f"control characters are printed: {ascii(steering[:5])}")
        if most_mib and done.mib > most_mib:
            raise Failure(f"{done.mib:.0f} MiB, more than {most_mib}: {last}")
        left = [path.name for path in (self.folder / "tmp").iterdir()]
        left += [str(path) for path in self.folder.rglob(".*.tmp")]
        if left:
            raise Failure(f"temporary files are left: {left[:3]}")

    def require(self, *words):
        """A command that prepares the campaign and must succeed."""
        done = self.execute(words)
        if done.code != 0:
            raise SystemExit(f"{shlex.join(self.commands[-1])} failed with {done.code}: {done.said}")


def limit_files(file_bytes):
    """In the child: no core dumps, and files of at most so many bytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))


def wait(process, kill_after):
    """Exit code and largest resident memory in MiB."""
    begun = time.monotonic()
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_maxrss / 1024
        elapsed = time.monotonic() - begun
        if kill_after is not None and elapsed > kill_after:
            process.kill()
            kill_after = None
        if elapsed > SECONDS:
            process.kill()
            process.wait()
            raise Failure(f"hangs: not done after {SECONDS} s")
        time.sleep(0.002)


def main(description, make, add_options=lambda parser: None):
    """Runs the trials that the command line names, of the campaign make(program, folder, arguments)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("program")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="number of one trial")
    parser.add_argument("--part", default="0/1", help="I/N: the trials whose number is I modulo N")
    parser.add_argument("--keep", help="folder that keeps the files of the last trial")
    add_options(parser)
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    numbers = range(part, arguments.trials, parts) if arguments.only is None else [arguments.only]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="triptych-campaign-") as folder:
        for name, variable in (("cache", "XDG_CACHE_HOME"), ("tmp", "TMPDIR")):
            os.environ[variable] = os.path.join(folder, name)  # neither a user's nor part of a trial
            os.mkdir(os.environ[variable])
        campaign = make(os.path.abspath(arguments.program), folder, arguments)
        for number in numbers:
            wrong = campaign.trial(arguments.seed, number)
            if wrong is None:
                continue
            failed += 1
            print(f"trial {number}: {wrong}\n  again: {shlex.join([sys.argv[0], arguments.program])} "
                  f"--seed {arguments.seed} --only {number}")
            for command in campaign.commands:
                print("  " + shlex.join(command))
            sys.stdout.flush()
        runs = campaign.runs
        if arguments.keep:
            shutil.copytree(folder, arguments.keep, symlinks=True, ignore_dangling_symlinks=True)
    print(f"{runs} runs; {len(numbers) - failed} passed, {failed} failed")
    return 1 if failed else 0
