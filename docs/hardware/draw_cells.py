"""Draws what the cells of a systolic array do, from the file of --per-pe.

draw_cells.py snapshots CELLS.json CYCLES OUT.svg   the array in some cycles, 18,20,22: each cell with its
                                                    activation, its weight and the sum that leaves it
draw_cells.py activity CELLS.json OUT.svg           which cells multiply in which cycle, and for which slot
"""
# SPDX-License-Identifier: Apache-2.0
import json
import sys

COLOURS = ["#7aa6da", "#e8a87c", "#8fc49a", "#c7a0d6", "#e3c567", "#7fc7c4", "#d98c9a", "#a9b18f"]
CELL, GAP, MARGIN, LEFT = 46, 8, 30, 44


def number(value):
    return "–" if value is None else f"{value:g}"


def colour(slot):
    return COLOURS[slot % len(COLOURS)]


class Picture:
    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}" role="img"><title>{title}</title>',
                      '<style>rect{stroke:#8886;stroke-width:.7}text{font:10px sans-serif;fill:#111;text-anchor:middle}'
                      '.a{fill:#888;font-size:11px}.w{font-weight:bold}</style>']

    def box(self, x, y, width, height, fill):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>')

    def text(self, x, y, text, kind=""):
        kind = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x}" y="{y}"{kind}>{text}</text>')

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*self.parts, "</svg>\n"]))


def snapshots(cells, cycles, path):
    rows, columns = cells["rows"], cells["columns"]
    side, down = columns * CELL + GAP * 3, rows * CELL
    picture = Picture(LEFT + len(cycles) * side, down + 2 * MARGIN,
                      f'cells of {cells["machine"]} in cycles {", ".join(map(str, cycles))}')
    weights = {(step["row"], step["column"]): step["weight"] for step in cells["steps"]}
    for frame, cycle in enumerate(cycles):
        left = LEFT + frame * side
        picture.text(left + columns * CELL / 2, 16, f"cycle {cycle}", "a")
        now = {(step["row"], step["column"]): step for step in cells["steps"] if step["cycle"] == cycle}
        for row in range(rows):
            for column in range(columns):
                x, y, step = left + column * CELL, MARGIN + row * CELL, now.get((row, column))
                picture.box(x, y, CELL, CELL, colour(step["slot"]) if step else "#f4f4f4")
                picture.text(x + CELL / 2, y + 27, number(weights.get((row, column), 0)), "w")
                if step:
                    picture.text(x + 10, y + 13, number(step["activation"]))
                    picture.text(x + CELL - 14, y + CELL - 5, number(step["sum_out"]))
        for row in range(rows) if frame == 0 else ():
            picture.text(LEFT / 2, MARGIN + row * CELL + 27, f"row {row}", "a")
    picture.write(path)


def activity(cells, path):
    rows, columns, steps = cells["rows"], cells["columns"], cells["steps"]
    first, last = steps[0]["cycle"], steps[-1]["cycle"]
    wide, high = 26, 13
    picture = Picture(70 + (last - first + 1) * wide + 10, MARGIN + rows * columns * high + 10,
                      f'which cells of {cells["machine"]} multiply in which cycle')
    for cycle in range(first, last + 1):
        picture.text(70 + (cycle - first) * wide + wide / 2, 16, cycle, "a")
    for row in range(rows):
        for column in range(columns):
            picture.text(34, MARGIN + (row * columns + column) * high + 10, f"PE ({row},{column})", "a")
    for step in steps:
        place = step["row"] * columns + step["column"]
        picture.box(70 + (step["cycle"] - first) * wide, MARGIN + place * high, wide, high, colour(step["slot"]))
        picture.text(70 + (step["cycle"] - first) * wide + wide / 2, MARGIN + place * high + 10, step["slot"])
    picture.write(path)


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "snapshots":
        snapshots(read(sys.argv[2]), [int(cycle) for cycle in sys.argv[3].split(",")], sys.argv[4])
    elif len(sys.argv) == 4 and sys.argv[1] == "activity":
        activity(read(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(__doc__)
