"""Grader of lab 13: a student's matrix products on the emulated tensor cores. It checks values, products of the tensor
cores, sectors of global memory, requests of shared memory and passes through the banks."""
# SPDX-License-Identifier: Apache-2.0
from operator import mul

from cuda import Kernels, Launch, New, add_counted, near, too_many

PRODUCT = 16 * 8 * 16  # multiply-adds of one product of the tensor cores
BLOCK = 64  # rows and columns of a block's tile
STEP_SECTORS = 2 * BLOCK * 16 * 2 // 32  # of both tiles of a step of 16, in halves
PASSES = 4  # of a request of 16 bytes for each lane
WARPS = 4
LOADS = 4  # of ldmatrix with four matrices, for a warp's 32 x 16 and 16 x 32 halves


def product_launch(name, shape, bench, hidden):
    """Operands are multiples of 1 / 16 that halves hold exactly."""
    m, n, k = shape
    a, b = ([(hidden.below(65) - 32) / 16 for _ in range(count)] for count in (m * k, k * n))
    bench.put_array(f"{name}_a.npy", [m, k], a, "f16")
    bench.put_array(f"{name}_b.npy", [k, n], b, "f16")
    columns = [b[column::n] for column in range(n)]
    expected = [sum(map(mul, a[row * k:(row + 1) * k], column)) for row in range(m) for column in columns]
    return Launch(f"M = {m}, N = {n}, K = {k}", [f"{name}_a.npy", f"{name}_b.npy", New("f32", [m, n]), m, n, k],
                  {3: near(expected, 1e-3)})


def products_problem(counted, shape):
    m, n, k = shape
    least = m * n * k // PRODUCT
    if counted.products < least:
        return f"{counted.products:.0f} products of the tensor cores, and {least} are needed"
    return too_many(counted.products, least, "products of the tensor cores")


def grade_tensor(kernels, bench, report, hidden):
    shape = tuple(16 * (1 + hidden.below(3)) for _ in range(3))
    counted = kernels.run("tensor", product_launch("tensor", shape, bench, hidden), (shape[1] // 16, shape[0] // 16), 32)
    report.exact("tensor: values", 10, counted.problem)
    add_counted(report, counted, "tensor: products", 4, lambda counted: products_problem(counted, shape))


def blocks_problem(kernels, name, bench, hidden):
    """(counts of a kernel with tiles of a block, their problem, steps of 16 of all its blocks)"""
    shape = BLOCK * (1 + hidden.below(2)), BLOCK * (1 + hidden.below(2)), 16 * (3 + hidden.below(3))
    counted = kernels.run(name, product_launch(name, shape, bench, hidden), (shape[1] // BLOCK, shape[0] // BLOCK), 32 * WARPS)
    steps = shape[0] // BLOCK * (shape[1] // BLOCK) * (shape[2] // 16)
    return counted, counted.problem or products_problem(counted, shape), steps


def sectors_problem(counted, steps):
    return too_many(counted.load_sectors, STEP_SECTORS * steps, f"sectors loaded in {steps} steps of 16")


def grade_tiled(kernels, bench, report, hidden):
    counted, problem, steps = blocks_problem(kernels, "tiled", bench, hidden)
    report.exact("tiled: values", 8, problem)
    add_counted(report, counted, "tiled: sectors", 6, lambda counted: sectors_problem(counted, steps))
    add_counted(report, counted, "tiled: banks", 6, lambda counted: too_many(
        counted.shared_load_wavefronts, 1.05 * PASSES * counted.shared_loads,
        f"passes through the banks for {counted.shared_loads:.0f} fragments from shared memory"))


def grade_pipelined(kernels, bench, report, hidden):
    counted, problem, steps = blocks_problem(kernels, "pipelined", bench, hidden)
    report.exact("pipelined: values", 10, problem)
    add_counted(report, counted, "pipelined: sectors", 4, lambda counted: sectors_problem(counted, steps))
    add_counted(report, counted, "pipelined: loads", 6, lambda counted: too_many(
        counted.shared_loads, LOADS * WARPS * steps, f"requests load from shared memory in {steps} steps of {WARPS} warps"))
    add_counted(report, counted, "pipelined: banks", 6, lambda counted: too_many(
        counted.shared_load_wavefronts, 1.05 * PASSES * LOADS * WARPS * steps,
        f"passes through the banks for the fragments of {steps} steps of {WARPS} warps"))


def grade(submission, bench, report, hidden):
    kernels = Kernels(submission, bench, "product", whole=True)
    grade_tensor(kernels, bench, report, hidden)
    grade_tiled(kernels, bench, report, hidden)
    grade_pipelined(Kernels(submission, bench, "pipeline", whole=True), bench, report, hidden)


def predictions(bench):
    side = 128
    tiles = (side // 16) ** 2
    return [("products", 4, side ** 3 // PRODUCT, 0),
            ("sectors_of_a_fragment", 4, 16 * 16 * 2 // 32, 0),
            ("bytes_of_tensor", 4, tiles * 2 * 16 * side * 2, 0),
            ("tiled_saves", 4, BLOCK / 16, 0),
            ("loads_of_a_step", 4, LOADS, 0)]
