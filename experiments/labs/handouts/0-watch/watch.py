"""Shows what each cell of the array does, cycle by cycle.

  watch.py            writes x.npy and w.npy, the numbers of the handout
  watch.py cells.json a grid for each cycle: activation x weight, and the sum that goes down
"""
# SPDX-License-Identifier: Apache-2.0
import json
import struct
import sys

X = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]
W = [[1, 2, 0, 1], [0, 1, 3, 1], [2, 0, 1, 1], [1, 1, 0, 2]]


def save(name, rows):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), }"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<16f", *sum(rows, [])))


def show(run):
    steps = run["steps"]
    first = steps[0]["cycle"]
    for cycle in range(first, steps[-1]["cycle"] + 1):
        at = {(s["row"], s["column"]): s for s in steps if s["cycle"] == cycle}
        print(f"cycle {cycle}, {cycle - first} after the first multiply-add: {len(at)} cells work")
        for row in range(run["rows"]):
            cells = []
            for column in range(run["columns"]):
                s = at.get((row, column))
                cells.append(f"{s['activation']:3g} x {s['weight']:2g} -> {s['sum_out']:3g}" if s else "-")
            print("   " + "   ".join(f"{cell:16}" for cell in cells))
        print()


if len(sys.argv) > 1:
    with open(sys.argv[1], encoding="utf-8") as given:
        show(json.load(given))
else:
    save("x.npy", X)
    save("w.npy", W)
