"""Writes x.npy (8 x 8), w.npy (8 x 8) and expected.npy (x w); or prints an array: numbers.py y.npy."""
# SPDX-License-Identifier: Apache-2.0
import ast
import struct
import sys

ROWS, INNER, COLUMNS = 8, 8, 8


def save(name, rows, columns, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}f", *values))


def show(name):
    try:
        data = open(name, "rb").read()
    except FileNotFoundError:
        sys.exit(f"there is no {name}; the run that writes it has not succeeded yet")
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    columns = ast.literal_eval(data[10:begin].decode())["shape"][-1]
    values = struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])
    for row in range(0, len(values), columns):
        print(" ".join(f"{value:6g}" for value in values[row:row + columns]))


if len(sys.argv) > 1:
    show(sys.argv[1])
else:
    x = [i * 5 % 17 - 8 for i in range(ROWS * INNER)]
    w = [i * 3 % 11 - 5 for i in range(INNER * COLUMNS)]
    y = [sum(x[m * INNER + k] * w[k * COLUMNS + c] for k in range(INNER))
         for m in range(ROWS) for c in range(COLUMNS)]
    save("x.npy", ROWS, INNER, x)
    save("w.npy", INNER, COLUMNS, w)
    save("expected.npy", ROWS, COLUMNS, y)
