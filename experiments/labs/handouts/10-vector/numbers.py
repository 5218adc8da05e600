"""Writes the inputs of the three programs and their expected results; or prints an array: numbers.py y.npy."""
# SPDX-License-Identifier: Apache-2.0
import ast
import pathlib
import struct
import sys

LANES, ROWS, TILE, NEAR = 4, 64, 32, 1e-5


def save(name, values):
    shape = (len(values) // LANES, LANES)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(f"{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}f", *values))


def load(name):
    try:
        data = open(name, "rb").read()
    except FileNotFoundError:
        sys.exit(f"there is no {name}; the run that writes it has not succeeded yet")
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    columns = ast.literal_eval(data[10:begin].decode())["shape"][-1]
    return columns, struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])


def show(name):
    columns, values = load(name)
    for row in range(0, len(values), columns):
        print(" ".join(f"{value:10.6f}" for value in values[row:row + columns]))
    expected = pathlib.Path(name).with_name(f"expected_{pathlib.Path(name).name}")
    if not expected.exists():
        return
    for i, (got, right) in enumerate(zip(values, load(expected)[1])):
        if not abs(got - right) <= NEAR * max(1, abs(right)):
            print(f"row {i // columns}, column {i % columns} should be {right:.6f}")
            return
    print("all values are near those expected; lab check compares the bits")


def small(count, step, modulus, scale=0.25):
    return [(i * step % modulus - modulus // 2) * scale for i in range(count)]


def mean_and_variance(values):
    mean = sum(values) / len(values)
    return mean, sum((value - mean) ** 2 for value in values) / len(values)


def write():
    x, tile = small(ROWS * LANES, 7, 23), small(TILE * LANES, 5, 19)
    p = small(LANES, 3, 7) + [0.25, 0.5, 0.75, 1.0] + small(LANES, 5, 9, 0.5) + small(LANES, 2, 5)
    mean, inverse, scale, bias = (p[r * LANES:(r + 1) * LANES] for r in range(4))
    statistics = [mean_and_variance(x[c::LANES]) for c in range(LANES)]
    z = []
    for first in range(0, len(tile), LANES):
        row = tile[first:first + LANES]
        middle, variance = mean_and_variance(row)
        z += [(value - middle) / (variance + 1e-5) ** 0.5 for value in row]
    arrays = {"square": small(16, 5, 17, 1), "x": x, "p": p, "tile": tile,
              "expected_y": [max(0, (x[i] - mean[c]) * scale[c] * inverse[c] + bias[c])
                             for i in range(len(x)) for c in (i % LANES,)],
              "expected_mean": [each[0] for each in statistics],
              "expected_variance": [each[1] for each in statistics], "expected_z": z}
    for name, values in arrays.items():
        save(name, values)


if len(sys.argv) > 1:
    show(sys.argv[1])
else:
    write()
