"""Grader of lab 13: a student's matrix product on the emulated tensor cores. It checks values, products of the tensor
cores, sectors of global memory and passes through the banks."""
# SPDX-License-Identifier: Apache-2.0
from operator import mul

from cuda import Kernels, Launch, New, add_counted, near, too_many

PRODUCT = 16 * 8 * 16  # multiply-adds of one product of the tensor cores
BLOCK = 64  # rows and columns of a block's tile
STEP_SECTORS = 2 * BLOCK * 16 * 2 // 32  # of both tiles of a step of 16, in halves
PASSES = 4  # of a request of 16 bytes for each lane


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
    report.exact("tensor: values", 14, counted.problem)
    add_counted(report, counted, "tensor: products", 8, lambda counted: products_problem(counted, shape))


def grade_tiled(kernels, bench, report, hidden):
    shape = BLOCK * (1 + hidden.below(2)), BLOCK * (1 + hidden.below(2)), 16 * (2 + hidden.below(3))
    counted = kernels.run("tiled", product_launch("tiled", shape, bench, hidden), (shape[1] // BLOCK, shape[0] // BLOCK), 128)
    report.exact("tiled: values", 14, counted.problem or products_problem(counted, shape))
    steps = shape[2] // 16
    add_counted(report, counted, "tiled: sectors", 14, lambda counted: too_many(
        counted.load_sectors, STEP_SECTORS * counted.blocks * steps,
        f"sectors loaded by {counted.blocks:.0f} blocks in {steps} steps of 16"))
    add_counted(report, counted, "tiled: banks", 10, lambda counted: too_many(
        counted.shared_load_wavefronts, 1.05 * PASSES * counted.shared_loads,
        f"passes through the banks for {counted.shared_loads:.0f} fragments from shared memory"))


def grade(submission, bench, report, hidden):
    kernels = Kernels(submission, bench, "product", whole=True)
    grade_tensor(kernels, bench, report, hidden)
    grade_tiled(kernels, bench, report, hidden)


def predictions(bench):
    side = 128
    tiles = (side // 16) ** 2
    return [("products", 5, side ** 3 // PRODUCT, 0),
            ("sectors_of_a_fragment", 5, 16 * 16 * 2 // 32, 0),
            ("bytes_of_tensor", 5, tiles * 2 * 16 * side * 2, 0),
            ("tiled_saves", 5, BLOCK / 16, 0)]
