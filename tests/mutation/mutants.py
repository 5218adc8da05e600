#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: makes conditions of the C++ sources wrong and reports which tests notice.

One build of a copy of the sources holds all mutants. Each condition (conditions.py) is dropped or negated by
an environment variable (switch.h). A first run of every test records which conditions it reaches with which
values, so that a mutant is tried by those tests alone. A mutant whose condition never had the other value
survives without a run.

  mutants.py TREE [--sample 200] [--seed 1] [--minutes 25] [--only PREFIX] [--again]
             [--most-seconds S] [--skip-tests REGEX] [--targets TARGET...]

TREE holds the copy, its build, the records and results.json. A later run builds what changed. With --again it
tries only the mutants of results.json that no test killed and survivors.txt does not explain, and keeps the
verdicts of the others.
"""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import conditions

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = re.compile(r"(core|backends|parallel)/.*\.(cpp|cu)|backends/.*/kernels/.*\.(h|cuh)"
                     r"|experiments/training/data/\w*(metrics|confusion)\w*\.cpp")
# Cases are tests themselves; measured speeds have no right value; the product of Hopper has planted mistakes of
# its own; a fake or a real GPU compiles the rest.
LEFT_OUT = re.compile(r"core/conformance/|backends/cpu/measured_|backends/cuda/(device|library|plain|lessons)/"
                      r"|backends/cuda/kernels/hopper_(gemm|matmul)|parallel/comm/nccl")
# Tests that look at the sources or build elsewhere, and slow ones that repeat what others reach.
NO_TESTS = (r"^(architecture|clang_|code_budget|option_literals|contributing|install|wheel|kernel_ptx|find_modules"
            r"|labs|python|campaign|torch|cli_(?!launch|ranks|resume)|confine|attack|own_graph|mutation)")
SPARE_NUMBERS = 8      # of a file, for conditions that are added later
MOST_CONDITIONS = 1 << 15
WANTED_SHARE = 0.9


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    text: str
    dropped: bool  # the value of the condition when it is dropped
    condition: int
    negated: bool

    @property
    def number(self):
        return 2 * self.condition + self.negated

    def key(self):
        """It stays when lines and numbers move."""
        return self.path, self.text, self.negated

    def __str__(self):
        change = "negated" if self.negated else "always " + str(self.dropped).lower()
        return f"{self.path}:{self.line}: `{self.text}` {change}"


@dataclasses.dataclass(frozen=True)
class Command:
    """A test as CTest runs it."""
    name: str
    arguments: list
    directory: str
    environment: dict
    skipped: int  # an exit status that is no failure

    def run(self, environment, seconds):
        """Its processor time when it passes, else None. One that hangs, or spins for longer, has failed."""
        def limit():
            most = int(10 + 5 * seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        process = subprocess.Popen(
            self.arguments, cwd=self.directory, preexec_fn=limit, process_group=0, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "GTEST_FAIL_FAST": "1", **self.environment, **environment})
        stop = threading.Timer(60 + 30 * seconds, lambda: os.killpg(process.pid, signal.SIGKILL))
        stop.start()
        _, status, usage = os.wait4(process.pid, 0)
        stop.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it has left
        return usage.ru_utime + usage.ru_stime if process.returncode in (0, self.skipped) else None


@dataclasses.dataclass(frozen=True)
class Test:
    command: Command
    seconds: float  # of the processor, when it was recorded
    seen: bytes


def write_if_changed(path, content):
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Tree:
    """The copy of the sources, its build and what was recorded of it."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        self.sources = self.folder / "sources"
        self.build = self.sources / "build" / "mutants"
        self.records = self.folder / "records"
        self.numbers = self.folder / "numbers.json"

    def copy(self):
        """Mirrors the sources. Returns the mutants and a digest of everything."""
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True,
                                capture_output=True, text=True).stdout
        numbers = json.loads(self.numbers.read_text()) if self.numbers.exists() else {"next": 1, "files": {}}
        mutants, digest = [], hashlib.sha256()
        for name in sorted(filter(None, listed.split("\0"))):
            source = ROOT / name
            if not source.is_file():
                continue
            content = source.read_bytes()
            digest.update(name.encode() + b"\0" + content)
            if SOURCES.fullmatch(name) and not LEFT_OUT.match(name):
                content, own = self.instrument(name, content.decode(), numbers)
                mutants += own
            write_if_changed(self.sources / name, content)
            shutil.copymode(source, self.sources / name)
        self.numbers.write_text(json.dumps(numbers))
        return mutants, digest.hexdigest()

    def instrument(self, name, text, numbers):
        found = conditions.conditions_of(text)
        if not found:
            return text.encode(), []
        place = numbers["files"].get(name)
        if place is None or place["room"] < len(found):
            place = {"first": numbers["next"], "room": len(found) + SPARE_NUMBERS}
            numbers["files"][name] = place
            numbers["next"] += place["room"]
            if numbers["next"] > MOST_CONDITIONS:
                sys.exit(f"mutants: more than {MOST_CONDITIONS} conditions; remove {self.folder} or raise the limit "
                         "in switch.cpp")
        mutants = [Mutant(name, one.line, " ".join(one.text.split()), one.dropped, place["first"] + i, negated)
                   for i, one in enumerate(found) for negated in (False, True)]
        return conditions.instrumented(text, found, place["first"]).encode(), mutants

    def compile(self, mutants, targets):
        """Builds. Returns the mutants in the build. A file that does not compile stays as it was."""
        subprocess.run(["cmake", "--preset", "mutants"], cwd=self.sources, check=True, stdout=subprocess.DEVNULL)
        command = ["cmake", "--build", "--preset", "mutants", "-j", str(os.cpu_count()), "--target", *targets,
                   "--", "-k", "0"]
        built = subprocess.run(command, cwd=self.sources, check=False, capture_output=True, text=True)
        wrong = {path for path in re.findall(r"^(?:/.*/sources/)?([\w/.]+):\d+:\d+: error", built.stdout, re.M)}
        for path in sorted(wrong & {mutant.path for mutant in mutants}):
            print(f"mutants: {path} does not compile with its mutants and stays as it is", flush=True)
            shutil.copy(ROOT / path, self.sources / path)
        if built.returncode != 0 and subprocess.run(command, cwd=self.sources, check=False).returncode != 0:
            sys.exit("mutants: the copy of the sources does not build")
        return [mutant for mutant in mutants if mutant.path not in wrong]

    def commands(self, skipped):
        """The tests of the build by name. A test is used only if its exit status alone is its result."""
        shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.build, check=True, capture_output=True,
                               text=True).stdout
        commands = []
        for test in json.loads(shown)["tests"]:
            properties = {one["name"]: one["value"] for one in test.get("properties", [])}
            judged_otherwise = {"WILL_FAIL", "PASS_REGULAR_EXPRESSION", "FAIL_REGULAR_EXPRESSION"} & set(properties)
            if re.search(skipped, test["name"]) or judged_otherwise or "command" not in test:
                continue  # without a command its program is not built
            environment = dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []))
            commands.append(Command(test["name"], test["command"], properties["WORKING_DIRECTORY"], environment,
                                    properties.get("SKIP_RETURN_CODE", 0)))
        return commands

    def record(self, digest, commands):
        """The conditions that each test reaches. A test that fails without a mutant is left out."""
        marker = self.records / "digest"
        if not marker.exists() or marker.read_text() != digest:
            shutil.rmtree(self.records, ignore_errors=True)
            self.records.mkdir(parents=True)
            marker.write_text(digest)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            tests = pool.map(self.record_one, commands)
        return [test for test in tests if test]

    def record_one(self, command):
        seen, cost = self.records / (command.name + ".seen"), self.records / (command.name + ".cost")
        if not cost.exists():
            seen.unlink(missing_ok=True)
            seconds = command.run({"TRIPTYCH_CONDITIONS": str(seen)}, 600)
            cost.write_text(str(-1 if seconds is None else seconds))
        seconds = float(cost.read_text())
        if seconds < 0:
            print(f"mutants: {command.name} fails without a mutant and is left out", flush=True)
        elif seen.exists():
            return Test(command, seconds, seen.read_bytes())
        return None


def tests_for(mutant, tests):
    """The tests that give the mutant's condition another value, or None when none reaches it. Tests with a word
    of the file's name in theirs come first, the cheapest before the others."""
    reached = [test for test in tests if test.seen[mutant.condition]]
    if not reached:
        return None
    other = 1 if mutant.dropped else 2
    words = [word for word in pathlib.Path(mutant.path).stem.split("_") if len(word) > 2]

    def order(test):
        return not any(word in test.command.name.lower() for word in words), test.seconds
    return sorted((test for test in reached if mutant.negated or test.seen[mutant.condition] & other), key=order)


def verdict_of(tree, mutant, tests):
    """"unreached", "unseen", "survived", or the test that killed the mutant."""
    chosen = tests_for(mutant, tests)
    if chosen is None:
        return "unreached"
    if not chosen:
        return "unseen"
    for test in chosen:
        if test.command.run({"TRIPTYCH_MUTANT": str(mutant.number)}, test.seconds) is None:
            return "killed by " + test.command.name
    return "survived"


def explained():
    """Mutants that no test can kill, each with the reason: "path: `condition`: reason" a line."""
    lines = (pathlib.Path(__file__).parent / "survivors.txt").read_text().splitlines()
    entries = {}
    for line in lines:
        match = re.fullmatch(r"([^:#]+): `(.*)`( negated)?: (.+)", line)
        if match:
            entries[match[1], match[2], bool(match[3])] = match[4]
        elif line and not line.startswith("#"):
            sys.exit(f"mutants: survivors.txt has a line that is no entry: {line}")
    return entries


def run_sample(tree, sample, tests, deadline):
    """The verdict of each mutant of the sample, as far as the time lasts."""
    verdicts = {}

    def judge(mutant):
        if time.monotonic() < deadline:
            verdicts[mutant] = verdict_of(tree, mutant, tests)
            print(f"{verdicts[mutant]}: {mutant}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(judge, sample))
    return verdicts


def report(tree, verdicts, reasons):
    """Prints the counts and the survivors. True when enough were killed."""
    killed = [mutant for mutant, verdict in verdicts.items() if verdict.startswith("killed")]
    rest = [mutant for mutant in verdicts if mutant not in killed]
    known = [mutant for mutant in rest if mutant.key() in reasons]
    (tree.folder / "results.json").write_text(json.dumps(
        [{**dataclasses.asdict(mutant), "verdict": verdict} for mutant, verdict in verdicts.items()], indent=1))
    counted = len(verdicts) - len(known)
    share = len(killed) / counted if counted else 0
    print(f"mutants: {len(killed)} of {counted} killed ({100 * share:.1f} %), {len(known)} more are explained")
    for mutant in rest:
        if mutant not in known:
            print(f"  {verdicts[mutant]}: {mutant}")
    return share >= WANTED_SHARE


def earlier_verdicts(tree, mutants):
    """The verdicts in results.json. Those of mutants that no test killed belong to them as they are now, for lines
    and numbers may have moved."""
    verdicts, rest = {}, {}
    for entry in json.loads((tree.folder / "results.json").read_text()):
        verdict = entry.pop("verdict")
        if verdict.startswith("killed"):
            verdicts[Mutant(**entry)] = verdict
        else:
            rest[entry["path"], entry["text"], entry["negated"]] = verdict
    for mutant in mutants:
        if mutant.key() in rest:
            verdicts[mutant] = rest[mutant.key()]
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tree", type=pathlib.Path, help="folder of the copy, its build and the results")
    parser.add_argument("--sample", type=int, default=200, help="mutants that are tried")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of mutants")
    parser.add_argument("--minutes", type=float, default=25, help="no mutant is begun later than this")
    parser.add_argument("--only", default="", help="prefix of the files that are made wrong")
    parser.add_argument("--again", action="store_true", help="try the mutants of results.json that were not killed")
    parser.add_argument("--most-seconds", type=float, default=math.inf, help="tests that take longer are not used")
    parser.add_argument("--targets", nargs="+", default=["all"], help="tests that are built and used (default: all)")
    parser.add_argument("--skip-tests", default=NO_TESTS, help="regular expression of tests that are not used")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes
    tree = Tree(options.tree)
    mutants, digest = tree.copy()
    mutants = tree.compile(mutants, options.targets)
    recorded = tree.record(digest, tree.commands(options.skip_tests))
    tests = [test for test in recorded if test.seconds <= options.most_seconds]
    mutants = [mutant for mutant in mutants if mutant.path.startswith(options.only)]
    if options.again:
        verdicts = earlier_verdicts(tree, mutants)
        sample = [mutant for mutant, verdict in verdicts.items()
                  if not verdict.startswith("killed") and mutant.key() not in explained()]
    else:
        verdicts, sample = {}, random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    verdicts.update(run_sample(tree, sample, tests, deadline))
    return 0 if report(tree, verdicts, explained()) else 1


if __name__ == "__main__":
    sys.exit(main())
