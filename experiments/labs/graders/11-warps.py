"""Grader of lab 11: a student's histogram, scan and compaction on the emulator. It checks results, races, atomic
operations, barriers and accesses of shared memory."""
# SPDX-License-Identifier: Apache-2.0
from itertools import accumulate

from cuda import ONLY_IF_RIGHT, Kernels, Launch, New, add_counted, equal, first_difference, parts, too_many

BINS, BLOCK, EACH = 64, 256, 1024  # threads of a block, and its elements in `histogram`
WARP = 32
PASSES = 8  # through the banks that atomic operations on 32 numbers may take
SHARED = 24  # requests of shared memory of a block of `scan`


def put(bench, name, values):
    bench.put_array(name, [len(values)], values, "i32")
    return name


def histogram_launch(bench, name, values, words):
    counts = [0] * BINS
    for value in values:
        counts[value] += 1
    return Launch(f"n = {len(values)}, {words}", [put(bench, name, values), New("i32", [BINS], 0), len(values)],
                  {2: equal(counts)})


def scan_launch(bench, values):
    blocks = [values[first:first + BLOCK] for first in range(0, len(values), BLOCK)]
    scanned = [list(accumulate(block)) for block in blocks]
    return Launch(f"n = {len(values)}",
                  [put(bench, "scan.npy", values), New("i32", [len(values)]), New("i32", [len(blocks)]), len(values)],
                  {2: equal(sum(scanned, [])), 3: equal([sum(block) for block in blocks])})


def compact_launch(bench, signs):
    """Element i is i + 1 or its negative, so that a value names its place."""
    values = [i + 1 if positive else -1 - i for i, positive in enumerate(signs)]
    kept = [value for value in values if value > 0]

    def problem(array):
        got = list(array.integers())
        wrong = first_difference(array, sorted(got[:len(kept)]), kept, lambda a, b: a == b)
        return f"sorted by size, {wrong}" if wrong else scattered(got[:len(kept)])
    return Launch(f"n = {len(values)}", [put(bench, "compact.npy", values), New("i32", [len(values)], 0),
                                         New("i32", [1], 0), len(values)],
                  {3: equal([len(kept)]), 2: problem})


def scattered(got):
    """The first two elements of one warp that are no neighbours in y or in the wrong order."""
    place = {value: i for i, value in enumerate(got)}
    for before, after in zip(sorted(got), sorted(got)[1:]):
        if (before - 1) // WARP == (after - 1) // WARP and place[after] != place[before] + 1:
            return (f"x[{before - 1}] is y[{place[before]}] and x[{after - 1}], the next one of its warp, is "
                    f"y[{place[after]}]")
    return ""


def grade_histogram(kernels, bench, report, hidden):
    n = 2100 + hidden.below(900)
    even = histogram_launch(bench, "even.npy", [hidden.below(BINS) for _ in range(n)], "all values equally often")
    common = hidden.below(BINS)
    skewed = histogram_launch(bench, "skewed.npy", [hidden.below(BINS) if hidden.below(10) == 0 else common
                                                    for _ in range(n)], "nine of ten values equal")
    grid = (parts(n, EACH),)
    first = kernels.run("histogram", even, grid, BLOCK)
    second = first if first.problem else kernels.run("histogram", skewed, grid, BLOCK)

    def atomics(counted):
        return too_many(counted.atomic_lanes, BINS * counted.blocks,
                        f"atomic operations on global memory by {counted.blocks:.0f} blocks")
    problem = second.problem or atomics(first) or atomics(second)
    report.exact("histogram", 12, problem)
    add_counted(report, second, "histogram: contention", 8, lambda counted: (problem and ONLY_IF_RIGHT) or too_many(
        counted.shared_atomic_wavefronts, PASSES * parts(n, WARP),
        f"passes through the banks for atomic operations on {n} numbers, nine of ten equal")
        or too_many(counted.loads, 2 * parts(n, WARP), f"load requests for {n} numbers"))


def grade_scan(kernels, bench, report, hidden):
    n = 600 + hidden.below(400)
    counted = kernels.run("scan", scan_launch(bench, [hidden.below(201) - 100 for _ in range(n)]), (parts(n, BLOCK),), BLOCK)
    report.exact("scan", 12, counted.problem or too_many(counted.barriers, 2 * counted.blocks,
                                                         f"barriers in {counted.blocks:.0f} blocks"))
    add_counted(report, counted, "scan: shared", 6, lambda counted: too_many(
        counted.shared, SHARED * counted.blocks, f"requests of shared memory by {counted.blocks:.0f} blocks"))


def grade_compact(kernels, bench, report, hidden):
    n = 1500 + hidden.below(1000)
    share = 2 + hidden.below(7)
    counted = kernels.run("compact", compact_launch(bench, [hidden.below(10) < share for _ in range(n)]),
                          (parts(n, BLOCK),), BLOCK)

    def atomics(each, words):
        return too_many(counted.atomic_lanes, each * counted.blocks, f"atomic operations on global memory by {words}")
    report.exact("compact", 12, counted.problem or atomics(BLOCK // WARP, f"{parts(n, WARP)} warps with elements"))
    add_counted(report, counted, "compact: blocks", 10, lambda counted: atomics(1, f"{counted.blocks:.0f} blocks"))


def grade(submission, bench, report, hidden):
    kernels = Kernels(submission, bench, "warps")
    grade_histogram(kernels, bench, report, hidden)
    grade_scan(kernels, bench, report, hidden)
    grade_compact(kernels, bench, report, hidden)


def predictions(bench):
    kept = 0xF0F0
    return [("passes_of_one_bin", 5, WARP, 0),
            ("shuffles", 5, WARP.bit_length() - 1, 0),
            ("rank_of_13", 5, bin(kept & (1 << 13) - 1).count("1"), 0),
            ("atomics_of_warps", 5, 8192 // WARP, 0)]
