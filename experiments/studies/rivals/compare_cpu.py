#!/usr/bin/env python3
"""Measures ours and the rivals in turns, for compare_cpu.sh; cpu_report.py judges the results."""
# SPDX-License-Identifier: Apache-2.0
import argparse
import datetime
import json
import os
import pathlib
import platform
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cpu_report
from cpu_cases import PARTS, cases_of
from cpu_rivals import Programs

DROPPED = 1.3  # a variant slower than its family's best by this in the first round is left out


def prepare_first(programs, folder):
    for command in (["synthesize", "--out", folder / "image", "--images", 1, "--size", 64],
                    ["train", "--model", "unet-s", "--synthetic-images", 2, "--steps", 1, "--batch",
                     1, "--out", folder / "run"]):
        subprocess.run([programs.program, *map(str, command)], check=True, capture_output=True)


def processors(threads):
    """One per thread, and one per core as long as there are cores."""
    def brothers(cpu):
        path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        return path.read_text().strip() if path.exists() else str(cpu)
    allowed, seen = sorted(os.sched_getaffinity(0)), {}
    for cpu in allowed:
        seen.setdefault(brothers(cpu), cpu)
    cores = list(seen.values())
    return (cores + [cpu for cpu in allowed if cpu not in cores])[:threads]


def full_command(entry, cpus):
    pinned = ["taskset", "-c", ",".join(map(str, cpus[:entry.threads]))]
    return [*pinned, *map(str, entry.command)]


def busy_seconds():
    """Times of all processors, including the hypervisor's share, and of the programs that ran here."""
    with open("/proc/stat") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (sum(ticks[:3] + ticks[5:]) / os.sysconf("SC_CLK_TCK"),
            children.ru_utime + children.ru_stime)


def run_watched(entry, cpus):
    """As run. "others" is the number of processors that other programs used meanwhile."""
    start, before = time.perf_counter(), busy_seconds()
    result = run(entry, cpus)
    all_busy, own = (after - earlier for after, earlier in zip(busy_seconds(), before))
    return {**result, "others": max(0, all_busy - own) / (time.perf_counter() - start)}


def run(entry, cpus):
    """{"seconds": [median, min, max or all], "peak_memory_mib": ..., "version": ...}."""
    command = full_command(entry, cpus)
    environment = {**os.environ, "OMP_NUM_THREADS": str(entry.threads),
                   "OPENBLAS_NUM_THREADS": str(entry.threads), **entry.environment}
    other = None
    if entry.beside_another:
        other = subprocess.Popen(["taskset", "-c", str(cpus[-1]), sys.executable, "-c",
                                  "while True: pass"])
        time.sleep(0.3)
    try:
        seconds, printed = [], ""
        for _ in range(max(1, entry.runs_to_time)):
            start = time.perf_counter()
            printed = subprocess.run(command, env=environment, capture_output=True, text=True,
                                     check=True, timeout=900).stdout
            seconds.append(time.perf_counter() - start)
    finally:
        if other:
            other.kill()
            other.wait()
    return {"seconds": seconds} if entry.runs_to_time else parsed(printed)


def parsed(printed):
    """Output of a program, in the format of the baselines."""
    document = json.loads(printed)
    if "results" not in document:
        return document
    row, environment = document["results"][0], document["environment"]
    # Of ours, bench gives three: the median of them is that of all.
    return {"version": f"{environment['version']} {environment['commit']}",
            "seconds": [row[name]["value"] for name in ("min", "median", "max")],
            "peak_memory_mib": row["peak_memory_mib"]}


def measure(case, rounds, cpus):
    """Every entry in turn. Every second round has the reverse order."""
    entries = list(case.entries)
    for number in range(rounds):
        for entry in entries if number % 2 == 0 else reversed(entries):
            if entry.name in case.errors:
                continue
            try:
                result = run_watched(entry, cpus)
                case.samples.setdefault(entry.name, []).append({"round": number, **result})
            except subprocess.CalledProcessError as error:
                case.errors[entry.name] = (error.stderr.strip() or str(error)).splitlines()[-1]
            except (subprocess.TimeoutExpired, ValueError) as error:
                case.errors[entry.name] = str(error)
        entries = entries_to_keep(case, entries) if number == 0 else entries


def entries_to_keep(case, entries):
    """Only the variants of a baseline that may be its best."""
    def time_of(entry):
        return min(case.samples[entry.name][0]["seconds"])  # the least disturbed
    measured = [entry for entry in entries if entry.name in case.samples]
    best = {}
    for entry in measured:
        best[entry.family] = min(time_of(entry), best.get(entry.family, float("inf")))
    return [entry for entry in measured if entry.family in ("ours", "fma peak") or
            time_of(entry) <= DROPPED * best[entry.family]]


def describe(options, programs, cpus):
    commit = subprocess.run(["git", "-C", options.root, "describe", "--always", "--dirty"],
                            capture_output=True, text=True).stdout.strip()
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo")
             if line.startswith("model name")]
    return {"schema": 1, "kind": "recorded", "commit": commit,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "machine": {"cpu": names[0] if names else platform.machine(),
                        "processors": os.cpu_count(), "system": platform.platform()},
            "threads": options.threads, "pinned_to": cpus, "rounds": options.rounds,
            "missing": programs.missing, "openmp_blas": programs.openmp_blas}


def parse_options():
    def count(text):
        if not 1 <= int(text) <= 1000:
            raise ValueError
        return int(text)
    parser = argparse.ArgumentParser(prog="compare_cpu", allow_abbrev=False)
    for name in ("--program", "--build", "--rivals", "--root"):
        parser.add_argument(name, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=count, default=5)
    parser.add_argument("--samples", type=count, default=1000)
    parser.add_argument("--threads", type=count, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    unknown = set(options.parts.split(",")) - PARTS.keys()
    if unknown:
        parser.error(f"--parts has no {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    if options.threads > len(os.sched_getaffinity(0)):
        parser.error(f"--threads {options.threads}: there are fewer processors")
    options.out = options.out or pathlib.Path(options.root) / "experiments/recorded"
    return options


def measure_all(cases, rounds, cpus):
    """Ends early with the measurements so far when it is interrupted or terminated."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for number, case in enumerate(cases):
            print(f"[{number + 1}/{len(cases)}] {case.name}", file=sys.stderr, flush=True)
            measure(case, min(rounds, case.most_rounds), cpus)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)


def tell_missing(programs, rivals):
    for name, install in programs.missing.items():
        print(f"missing: {name}: {install}", file=sys.stderr)
    if rivals and not programs.openmp_blas:
        print("PyTorch is slower than it could be: apt-get install libopenblas0-openmp",
              file=sys.stderr)


def main():
    options = parse_options()
    cpus = processors(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        if not options.dry_run:  # a build at the same time must not change the measured files
            options.program = shutil.copy2(options.program, folder)
        programs = Programs(options.program, options.build, options.rivals == "yes", options.samples)
        tell_missing(programs, options.rivals == "yes")
        cases = [case for part in options.parts.split(",")
                 for case in cases_of(part, programs, options.threads, pathlib.Path(folder))
                 if options.only in case.name]
        if options.dry_run:
            for case in cases:
                for entry in case.entries:
                    print(shlex.join(full_command(entry, cpus)))
            return 0
        if any(case.name.startswith("first") for case in cases):
            prepare_first(programs, pathlib.Path(folder))
        document = describe(options, programs, cpus)
        measure_all(cases, options.rounds, cpus)
    return cpu_report.write(document, cases, options.out, (options.root, folder))


if __name__ == "__main__":
    sys.exit(main())
