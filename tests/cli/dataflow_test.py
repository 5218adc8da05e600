"""Both dataflows of an array: their bits, their cycles by a model of the manual, and the reports."""
# SPDX-License-Identifier: Apache-2.0
import json
import random
import struct

from support import ProgramTest, main

BOTH = ["--machine", "mmu4-both"]


def npy(shape, values):
    """A float32 array as the bytes of a .npy file."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + \
        struct.pack(f"<{len(values)}f", *values)


class Product:
    """y (m x n) = x (m x k) w (k x n), output-stationary, on an array of R x C cells."""

    def __init__(self, machine, m, k, n):
        self.machine, self.m, self.k, self.n = machine, m, k, n
        self.rows, self.columns = machine["rows"], machine["columns"]
        self.tiles = -(-k // self.rows)

    def program(self):
        """Instructions as (name, operands, givers that they wait for, takers that they signal)."""
        group = (self.rows - 1).bit_length()
        pitch = self.tiles * self.rows
        yield "load", {"address": "x", "pitch": 2 * pitch, "buffer_pitch": self.tiles, "units": self.tiles,
                       "lines": self.m, "log2_group": group}, [], ["compute"]
        yield "set_stream", {"in_height": 1, "in_width": self.m, "out_height": 1, "out_width": self.m, "stride_x": 1,
                             "step_x": self.tiles}, [], []
        yield "set_taps", {"channels": pitch, "kernel_width": 1, "log2_group": group}, [], []
        yield "set_output", {"out_height": 1, "out_width": self.m, "step_x": 4 * self.n}, [], []
        wait = ["load"]
        for column in range(0, self.n, self.columns):
            width = min(self.columns, self.n - column)
            for first in range(0, self.m, self.rows):
                count = min(self.rows, self.m - first)
                for tile in range(self.tiles):
                    row, last = tile * self.rows, tile + 1 == self.tiles
                    yield "weight_load", {"address": f"w+{2 * (row * self.n + column)}", "pitch": 2 * self.n,
                                          "rows": min(self.rows, self.k - row), "columns": width, "stream": 1}, [], []
                    signal = ["store"] if last and first + count == self.m else []
                    yield "matmul", {"output_stationary": 1, "transpose": 1, "drain": int(last),
                                     "accumulate": int(tile > 0), "address": first * self.tiles, "x": first,
                                     "rows_left": 1, "columns_left": self.m - first, "accumulator": first,
                                     "count": count, "channel": row, "offset": tile}, wait, signal
                    wait = []
            last = column + self.columns >= self.n
            yield "store", {"address": f"y+{4 * column}", "count": self.m, "columns": width, "rows_left": 1,
                            "columns_left": self.m}, ["compute"], [] if last else ["compute"]
            wait = ["store"]

    def text(self):
        x = self.m * self.tiles * self.rows * 2
        lines = [f".input x address=0 type=bf16 shape={self.m}x{self.tiles * self.rows}",
                 f".input w address={x} type=bf16 shape={self.k}x{self.n}",
                 f".output y address={(x + 2 * self.k * self.n + 3) // 4 * 4} type=f32 shape={self.m}x{self.n}"]
        for name, operands, wait, signal in self.program():
            tokens = {"wait": ",".join(wait), "signal": ",".join(signal)}
            given = {**{key: value for key, value in tokens.items() if value}, **operands}
            lines.append(" ".join([name, *(f"{key}={value}" for key, value in given.items())]))
        return "\n".join([*lines, "halt", ""])


class Manual:
    """Cycles of a program with ideal DRAM by the section "Time" of docs/reference/mmu.md, L = 1."""

    UNITS = {"load": "load", "weight_load": "weights", "set_stream": "compute", "set_taps": "compute",
             "matmul": "compute", "set_output": "store", "store": "store"}

    def __init__(self, machine):
        self.rows, self.columns = machine["rows"], machine["columns"]
        self.fifo, self.depth = machine["weight_tiles"], machine["queue_depth"]
        self.pops = {unit: [] for unit in ("load", "weights", "compute", "store")}
        self.idle = dict.fromkeys(self.pops, 0)
        self.tokens = {}  # (giver, taker): times
        self.tiles = []  # [available, first cycle in which the loader moves it]
        self.left = []  # by matmul: when it leaves the table
        self.taken = 0

    def cycles(self, program):
        offered = 0
        for name, operands, wait, signal in program:
            unit = self.UNITS[name]
            pops = self.pops[unit]
            if len(pops) >= self.depth:
                offered = max(offered, pops[-self.depth] + 1)
            ready = max([offered + 1, self.idle[unit], *(self.tokens[giver, unit].pop(0) for giver in wait)])
            pop, ends = getattr(self, name)(ready, operands)
            pops.append(pop)
            for taker in signal:
                self.tokens.setdefault((unit, taker), []).append(ends)
            offered += 1
        last_tile = self.tiles[-1][1] + self.rows
        return max([offered, last_tile, *self.left, *self.idle.values(), *(pops[-1] + 1 for pops in self.pops.values())])

    def load(self, ready, operands):
        requests = operands["units"] * operands["lines"]
        self.idle["load"] = ready + requests + 1
        return ready, ready + requests + 2

    def weight_load(self, ready, operands):
        if len(self.tiles) >= self.fifo:
            ready = max(ready, self.tiles[-self.fifo][1] + self.rows + self.columns)
        self.idle["weights"] = ready + operands["rows"] + 1
        self.tiles.append([ready + operands["rows"] + 2, None])
        return ready, ready + operands["rows"] + 2

    def set_stream(self, ready, _):
        pop = max([ready, *self.left])
        self.idle["compute"] = pop + 1
        return pop, pop + 1

    set_taps = set_stream

    def matmul(self, ready, operands):
        tile = self.tiles[self.taken]
        before = self.tiles[self.taken - 1][1] + self.rows - 1 if self.taken else 0
        start = max(ready, tile[0], before, self.left[-8] if len(self.left) >= 8 else 0)
        tile[1] = start + 1
        self.taken += 1
        self.idle["compute"] = start + self.rows
        self.left.append(start + 3 * self.rows + self.columns + 4)
        return start, start + 2 * self.rows + operands["count"] + self.columns + 2

    def set_output(self, ready, _):
        self.idle["store"] = ready + 1
        return ready, ready + 1

    def store(self, ready, operands):
        self.idle["store"] = ready + 3 + operands["count"]
        return ready, self.idle["store"]


class OutputStationary(ProgramTest):
    def run_product(self, product, dice):
        machine = {"name": "model", "dataflows": "both", "dram": "ideal", "dram_bytes": 1 << 20, "buffer_rows": 1024,
                   "accumulator_rows": 128, **product.machine}
        (self.folder / "model.json").write_text(json.dumps(machine))
        (self.folder / "product.s").write_text(product.text())
        x = [[dice.randint(-8, 8) for _ in range(product.k)] for _ in range(product.m)]
        w = [[dice.randint(-8, 8) for _ in range(product.n)] for _ in range(product.k)]
        padded = [value for row in x for value in row + [0] * (product.tiles * product.rows - product.k)]
        (self.folder / "x.npy").write_bytes(npy((product.m, product.tiles * product.rows), padded))
        (self.folder / "w.npy").write_bytes(npy((product.k, product.n), [value for row in w for value in row]))
        [result] = self.document("mmu", "run", "product.s", "--machine", "model.json", "--dram", "x=x.npy",
                                 "--dram", "w=w.npy", "--out", "y.npy", "--overwrite")["results"]
        data = (self.folder / "y.npy").read_bytes()
        y = struct.unpack(f"<{product.m * product.n}f", data[-4 * product.m * product.n:])
        self.assertEqual(list(y), [sum(a * w[i][column] for i, a in enumerate(row))
                                   for row in x for column in range(product.n)])
        return result["counters"]

    def test_cycles_are_those_of_the_manual(self):
        dice = random.Random(1)
        for _ in range(12):
            machine = {"rows": dice.choice([2, 4, 5, 8]), "columns": dice.choice([2, 3, 4, 8]),
                       "weight_tiles": dice.randint(1, 4), "queue_depth": dice.choice([1, 2, 16])}
            product = Product(machine, dice.randint(1, 20), dice.randint(1, 40), dice.randint(1, 20))
            with self.subTest(machine=machine, m=product.m, k=product.k, n=product.n):
                counters = self.run_product(product, dice)
                expected = Manual(machine).cycles(product.program())
                self.assertLessEqual(abs(counters["cycles"] - expected), counters["cycles"] / 100)
                self.assertEqual(counters["accumulator_writes"], product.m * product.n)
                self.assertEqual(counters["macs"], product.m * product.k * product.n)


class Reports(ProgramTest):
    def traced(self, *options):
        return self.document("trace", *options)["results"][0]["array"]["nodes"]

    def test_trace_and_bench_show_both_dataflows_and_the_planners_choice(self):
        shape = ["--m", "4", "--k", "64", "--n", "16"]
        [node] = self.traced("matmul", *shape, *BOTH)
        by_name = {entry["dataflow"]: entry for entry in node["dataflows"]}
        self.assertEqual(set(by_name), {"weight-stationary", "output-stationary"})
        weights, outputs = (by_name[name]["counters"] for name in ("weight-stationary", "output-stationary"))
        self.assertEqual(outputs["accumulator_writes"], 4 * 16)
        self.assertEqual(weights["accumulator_writes"], 4 * 16 * 64 // 4)
        self.assertEqual(node["cycles"], by_name[node["dataflow"]]["counters"]["cycles"])
        self.assertLessEqual(node["cycles"], 1.01 * min(weights["cycles"], outputs["cycles"]))
        for name, entry in by_name.items():
            [forced] = self.traced("matmul", *shape, *BOTH, "--tiling", f"dataflow={name}")
            self.assertEqual((forced["dataflow"], forced["cycles"]), (name, entry["counters"]["cycles"]))
            moved = sum(value for key, value in forced["counters"].items()
                        if key.startswith("dram_") and key.endswith("_bytes"))
            self.assertEqual(moved, entry["dram_bytes"])
        [row] = self.document("bench", "matmul", "--sizes", "16", "--backend", "systolic", "--contract", "bf16-exact",
                              *BOTH, "--layers", "--repeats", "1")["results"]
        self.assertEqual(len(row["array"][0]["dataflows"]), 2)
        self.assertIn("both dataflows (simulated):", self.succeed("trace", "matmul", *shape, *BOTH).stdout)

    def test_the_planner_takes_the_faster_one(self):
        machine = {"name": "ideal", "dataflows": "both", "dram": "ideal", "weight_tiles": 8}
        (self.folder / "ideal.json").write_text(json.dumps(machine))
        # A chain over k waits for its own sums, or else weights serve several blocks of positions.
        for shape, better in (((16, 1024, 16), "output-stationary"), ((64, 64, 64), "weight-stationary")):
            sides = [word for pair in zip(("--m", "--k", "--n"), map(str, shape)) for word in pair]
            [node] = self.traced("matmul", *sides, "--machine", "ideal.json")
            self.assertEqual(node["dataflow"], better)
            cycles = {entry["dataflow"]: entry["counters"]["cycles"] for entry in node["dataflows"]}
            self.assertEqual(node["cycles"], min(cycles.values()))
            self.assertGreater(max(cycles.values()), 1.02 * min(cycles.values()))

    def test_a_machine_with_one_dataflow_has_no_comparison(self):
        [node] = self.traced("matmul", "--machine", "mmu4")
        self.assertEqual((node["dataflow"], node["dataflows"]), ("weight-stationary", []))
        self.expect_error(4, "trace", "matmul", "--machine", "mmu4", "--tiling", "dataflow=output-stationary",
                          says=["mmu4", '"dataflows": "both"'])
        self.expect_error(2, "trace", "matmul", *BOTH, "--tiling", "dataflow=row-stationary",
                          says=["weight-stationary or output-stationary"])

    def test_cells_show_sums_that_stay(self):
        self.succeed("trace", "matmul", "--m", "4", "--k", "8", "--n", "4", *BOTH, "--tiling",
                     "dataflow=output-stationary", "--per-pe", "cells.json")
        steps = [step for step in json.loads((self.folder / "cells.json").read_text())["steps"]
                 if (step["row"], step["column"]) == (1, 2)]
        self.assertEqual(len(steps), 8)
        for before, after in zip(steps, steps[1:]):
            self.assertEqual(after["sum_in"], before["sum_out"])
            self.assertGreater(after["cycle"], before["cycle"])
            if after["slot"] > 0:  # the same tile
                self.assertEqual(after["cycle"], before["cycle"] + 1)


if __name__ == "__main__":
    main()
