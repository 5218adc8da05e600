#!/usr/bin/env python3
"""Times of a build and its tests: the most expensive steps of each, as Markdown.

  costs.py BUILD_FOLDER [--count 20]         wall time of each step as Ninja and CTest recorded it, beside others
  costs.py BUILD_FOLDER --processor REGEX    runs the tests whose names match, one after another, and lists their
                                             processor time (user and system) and wall time"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import time


def build_steps(build):
    """Seconds by what was made; of steps that make several files, under the first one's name."""
    steps = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, command = line.split("\t")
        steps.setdefault((command, start), [output, (int(end) - int(start)) / 1000])
    return {output.replace("CMakeFiles/", "").replace(".dir/", "/"): [seconds] for output, seconds in steps.values()}


def recorded_tests(build):
    """Seconds by test."""
    costs = {}
    for line in (build / "Testing/Temporary/CTestCostData.txt").read_text().splitlines():
        if line.startswith("-"):
            break
        name, _, seconds = line.rsplit(" ", 2)
        costs[name] = [float(seconds)]
    return costs


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measured_tests(build, regex):
    """Processor and wall seconds of each test whose name matches."""
    listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True)
    costs = {}
    for test in json.loads(listed.stdout)["tests"]:
        if not re.search(regex, test["name"]):
            continue
        properties = {each["name"]: each["value"] for each in test.get("properties", ())}
        environment = dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", ()))
        before, started = processor_seconds(), time.monotonic()
        done = subprocess.run(test["command"], cwd=properties["WORKING_DIRECTORY"], env={**os.environ, **environment},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        costs[test["name"]] = [processor_seconds() - before, time.monotonic() - started]
        if done.returncode not in (0, int(properties.get("SKIP_RETURN_CODE", 0))):
            print(f"{test['name']} failed with status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return costs


def table(title, costs, columns, count):
    print(f"| {title} ({len(costs)} in all, {sum(seconds[0] for seconds in costs.values()):.0f} s) | "
          f"{' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for name, seconds in sorted(costs.items(), key=lambda one: -one[1][0])[:count]:
        print(f"| {name} | {' | '.join(f'{each:.1f}' for each in seconds)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=20, help="rows of each table, default 20")
    parser.add_argument("--processor", metavar="REGEX", help="run these tests and measure their processor time")
    arguments = parser.parse_args()
    if arguments.processor is not None:
        costs = measured_tests(arguments.build, arguments.processor)
        table("tested", costs, ["processor s", "wall s"], arguments.count)
        return
    table("built", build_steps(arguments.build), ["s"], arguments.count)
    print()
    table("tested", recorded_tests(arguments.build), ["s"], arguments.count)


if __name__ == "__main__":
    main()
