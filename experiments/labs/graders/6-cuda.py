"""Grader of lab 6: compiles a student's kernels for convolution and attention and runs them on the emulator. It checks
values, faults and memory counters."""
# SPDX-License-Identifier: Apache-2.0
import math
from operator import mul

from cuda import Kernels, Launch, New, add_counted, bank_problem, near, parts, too_many
from grading import f32

COLUMNS, QUERIES = 32, 64  # of attention
SCALE = 0.176776695  # 1 / sqrt(32)


def convolve(shape, x, weights):
    """y of the handout's formula, summed in double precision."""
    channels, filters, height, width = shape

    def read(c, row, column):
        return x[(c * height + row) * width + column] if 0 <= row < height and 0 <= column < width else 0.0
    patches = [[read(c, row + i - 1, column + j - 1) for c in range(channels) for i in range(3) for j in range(3)]
               for row in range(height) for column in range(width)]
    depth = 9 * channels
    return [sum(map(mul, weights[k * depth:(k + 1) * depth], patch)) for k in range(filters) for patch in patches]


def conv_launch(shape, name, bench, hidden):
    """Writes the arrays of a convolution to the bench."""
    c, k, h, w = shape
    x = hidden.floats(c * h * w, 1)
    weights = hidden.floats(k * 9 * c, 1)
    bench.put_array(f"{name}_x.npy", [c, h, w], x)
    bench.put_array(f"{name}_weights.npy", [k, c, 3, 3], weights)
    return Launch(f"C = {c}, K = {k}, H = {h}, W = {w}",
                  [f"{name}_x.npy", f"{name}_weights.npy", New("f32", [k, h, w]), c, k, h, w],
                  {3: near(convolve(shape, x, weights))})


def grid_of(kernel, shape):
    _, k, h, w = shape
    return (parts(h * w, 32), parts(k, 32)) if kernel == "gemm" else (parts(w, 32), parts(h, 8), k)


def naive_problem(counted):
    problem = (too_many(counted.load_sectors, 4 * counted.loads,
                        f"sectors of 32 bytes loaded by {counted.loads:.0f} requests")
               or too_many(counted.store_sectors, 5 * counted.stores,
                           f"sectors stored by {counted.stores:.0f} requests"))
    return problem and f"{problem}; which element has the lane next to this one?"


def grade_convolutions(kernels, bench, report, hidden):
    shown = (2, 3, 13, 37)
    drawn = (3 + hidden.below(4), 33 + hidden.below(8), 9 + hidden.below(12), 33 + hidden.below(18))
    launches = [(shown, conv_launch(shown, "shown", bench, hidden)), (drawn, conv_launch(drawn, "drawn", bench, hidden))]

    def run(kernel):
        for shape, launch in launches:
            counted = kernels.run(kernel, launch, grid_of(kernel, shape), (32, 8))
            if counted.problem:
                break
        return counted

    channels, depths = drawn[0], parts(9 * drawn[0], 32)
    naive = run("naive")
    report.exact("naive", 12, naive.problem or naive_problem(naive))  # one item, because its values are handed out
    tiled = run("tiled")
    report.exact("tiled: values", 5, tiled.problem)
    add_counted(report, tiled, "tiled: sectors", 6, lambda counted: too_many(
        counted.load_sectors, 80 * counted.blocks * channels,
        f"sectors loaded by {counted.blocks:.0f} blocks of {channels} channels"))
    add_counted(report, tiled, "tiled: banks", 4, bank_problem)
    gemm = run("gemm")
    report.exact("gemm: values", 5, gemm.problem)
    add_counted(report, gemm, "gemm: sectors", 6, lambda counted: too_many(
        counted.load_sectors, 320 * counted.blocks * depths,
        f"sectors loaded by {counted.blocks:.0f} blocks of {depths} tiles in depth"))
    add_counted(report, gemm, "gemm: banks", 4, bank_problem)


def attend(n, q, k, v):
    """softmax(scale q k^T) v, row by row, in double precision."""
    def rows(values):
        return [values[i * COLUMNS:(i + 1) * COLUMNS] for i in range(n)]
    scale, keys, columns = f32(SCALE), rows(k), list(zip(*rows(v)))
    out = []
    for query in rows(q):
        scores = [sum(map(mul, query, key)) * scale for key in keys]
        largest = max(scores)
        weights = [math.exp(score - largest) for score in scores]
        total = sum(weights)
        out += [sum(map(mul, weights, column)) / total for column in columns]
    return out


def flash_launch(n, largest, bench, hidden):
    arrays = {"q": hidden.floats(n * COLUMNS, largest), "k": hidden.floats(n * COLUMNS, largest),
              "v": hidden.floats(n * COLUMNS, 1)}
    for name, values in arrays.items():
        bench.put_array(f"{name}.npy", [n, COLUMNS], values)
    return Launch(f"n = {n}, q and k up to {largest}",
                  ["q.npy", "k.npy", "v.npy", New("f32", [n, COLUMNS]), n, SCALE],
                  {4: near(attend(n, **arrays), 1e-3 if largest > 1 else 1e-4)})


def grade_flash(kernels, bench, report, hidden):
    def run(n, largest):
        return kernels.run("flash", flash_launch(n, largest, bench, hidden), (parts(n, QUERIES),), QUERIES)
    counted = run(70, 1)
    n = 130 + hidden.below(70)
    if not counted.problem:
        counted = run(n, 12)  # scores above 88, without a finite exponential
    report.exact("flash: values", 8, counted.problem)
    least = COLUMNS * 4 * (2 * n + 2 * n * parts(n, QUERIES))
    add_counted(report, counted, "flash: bytes", 6, lambda counted: too_many(
        32 * (counted.load_sectors + counted.store_sectors), 1.05 * least,
        f"bytes of global memory, in whole sectors, with n = {n}"))
    add_counted(report, counted, "flash: banks", 4, bank_problem)


def grade(submission, bench, report, hidden):
    grade_convolutions(Kernels(submission, bench, "conv"), bench, report, hidden)
    grade_flash(Kernels(submission, bench, "flash"), bench, report, hidden)


def predictions(bench):
    return [("sectors_of_a_row", 4, 32 * 4 // 32, 0),
            ("sectors_of_a_column", 4, 32, 0),
            ("passes_of_a_column_32", 4, 32, 0),
            ("passes_of_a_column_33", 4, 1, 0),
            # The 256 outputs of a block load 9 inputs each, or the block loads 34 x 10.
            ("tile_saves", 4, 9 * 256 / (34 * 10), 0.1)]
