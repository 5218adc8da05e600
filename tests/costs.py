#!/usr/bin/env python3
"""Times of a build and its tests: the most expensive steps of each, as Markdown.

  costs.py BUILD_FOLDER [COUNT]

Wall time of each step as Ninja and CTest recorded it, while others ran beside it."""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys


def build_steps(build):
    """Seconds by what was made; of steps that make several files, under the first one's name."""
    steps = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, command = line.split("\t")
        steps.setdefault((command, start), [output, (int(end) - int(start)) / 1000])
    return {output.replace("CMakeFiles/", "").replace(".dir/", "/"): seconds for output, seconds in steps.values()}


def tests(build):
    """Seconds by test."""
    costs = {}
    for line in (build / "Testing/Temporary/CTestCostData.txt").read_text().splitlines():
        if line.startswith("-"):
            break
        name, _, seconds = line.rsplit(" ", 2)
        costs[name] = float(seconds)
    return costs


def table(title, costs, count):
    print(f"| {title} ({len(costs)} in all, {sum(costs.values()):.0f} s) | s |\n|---|---:|")
    for name, seconds in sorted(costs.items(), key=lambda one: -one[1])[:count]:
        print(f"| {name} | {seconds:.1f} |")


def main():
    build = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    table("built", build_steps(build), count)
    print()
    table("tested", tests(build), count)


if __name__ == "__main__":
    main()
