"""Shows what each cell of the array does, cycle by cycle.

  watch.py            writes x.npy and w.npy, the numbers below, and product.s, which multiplies them
  watch.py 6 3 2      the same for an x of 6 x 3 and a w of 3 x 2, with numbers 1, 2, 3, ...
  watch.py cells.json a grid for each cycle: activation x weight, and the sum that goes down
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import struct
import sys

X = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]
W = [[1, 2, 0, 1], [0, 1, 3, 1], [2, 0, 1, 1], [1, 1, 0, 2]]

PROGRAM = """\
# y = x w, x {M} x {K}, w {K} x {N}, on the array mmu4 of 4 x 4 cells.
.input  x address=0 type=bf16 shape={M}x{K}
.input  w address={w} type=bf16 shape={K}x{N}
.output y address={y} type=f32 shape={M}x{N}
load        signal=compute address=x pitch={x_row} buffer_pitch={K} units={K} lines={M} log2_group=0
set_stream  in_height=1 in_width={M} out_height=1 out_width={M} stride_x=1 step_x={K}
set_taps    channels={K} kernel_width=1 log2_group=0
weight_load address=w pitch={w_row} rows={K} columns={N}
matmul      wait=load signal=store count={M} rows_left=1 columns_left={M}
set_output  out_height=1 out_width={M} step_x={y_row}
store       wait=compute address=y count={M} columns={N} rows_left=1 columns_left={M}
halt
"""


def save(name, rows):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = sum(rows, [])
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}f", *values))


def write(x, w):
    m, k, n = len(x), len(w), len(w[0])
    if any(len(row) != k for row in x) or any(len(row) != n for row in w):
        sys.exit("a row of x has as many numbers as w has rows, and all rows of a matrix are equally long")
    if not (1 <= m <= 60 and 1 <= k <= 4 and 1 <= n <= 4):
        sys.exit("one tile of weights is 4 x 4 at most, and x has 1 to 60 rows")
    save("x.npy", x)
    save("w.npy", w)
    w_address = (2 * m * k + 63) // 64 * 64  # two bytes a number, four for one of y
    with open("product.s", "w", encoding="utf-8") as file:
        file.write(PROGRAM.format(M=m, K=k, N=n, w=w_address, y=w_address + 64, x_row=2 * k, w_row=2 * n, y_row=4 * n))
    if os.path.exists("cells.json"):
        os.remove("cells.json")  # is of other numbers


def show(run):
    steps = run["steps"]
    first = steps[0]["cycle"]
    for cycle in range(first, steps[-1]["cycle"] + 1):
        at = {(s["row"], s["column"]): s for s in steps if s["cycle"] == cycle}
        work = "1 cell works" if len(at) == 1 else f"{len(at)} cells work"
        print(f"cycle {cycle}, {cycle - first} after the first multiply-add: {work}")
        for row in range(run["rows"]):
            cells = []
            for column in range(run["columns"]):
                s = at.get((row, column))
                cells.append(f"{s['activation']:3g} x {s['weight']:2g} -> {s['sum_out']:3g}" if s else "-")
            print("   " + "   ".join(f"{cell:16}" for cell in cells))
        print()


def counted(rows, columns):
    return [[row * columns + column + 1 for column in range(columns)] for row in range(rows)]


given = sys.argv[1:]
if not given:
    write(X, W)
elif len(given) == 3 and all(word.isdecimal() and 0 < int(word) < 100 for word in given):
    rows, inner, columns = map(int, given)
    write(counted(rows, inner), counted(inner, columns))
elif len(given) == 1 and os.path.isfile(given[0]):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever reads may stop
    with open(given[0], encoding="utf-8") as file:
        show(json.load(file))
elif len(given) == 1:
    sys.exit(f"there is no {given[0]}: triptych mmu run ... --per-pe {given[0]} writes it")
else:
    sys.exit(__doc__)
