#!/usr/bin/env python3
"""Maps the MMU's blocks to a library of gates and prints delay and area, block by block.

  timing.py RTL_FOLDER [--liberty FILE[.gz] ...] [--latencies 1 2 3] [--size 16] [--page FILE]

The delay is that of the longest way between registers, by abc, at the library's corner and without
wires; memories stay abstract. Without a library it is counted in gates of two inputs. --page puts
the tables between the marks of a page. Exit status 77: Yosys is not installed.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import concurrent.futures
import dataclasses
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MARKS = ("<!-- timing tables begin -->\n", "<!-- timing tables end -->\n")
PES = {"bf16": {"PeKind": 0, "ElementBits": 16}, "int8": {"PeKind": 1, "ElementBits": 8}}
# The other blocks, in the views that hardware has; `--size` gives their rows and columns.
OTHERS = {"mmu_accumulators_banks": {"AccumulatorRows": 2048}, "mmu_buffer_banks": {"BufferRows": 8192},
          "mmu_compute": {"AccumulatorRows": 2048}, "mmu_counters": {},
          "mmu_dispatch": {"AccumulatorRows": 2048}, "mmu_load": {"BufferRows": 8192},
          "mmu_loader": {}, "mmu_operand": {}, "mmu_queue": {}, "mmu_skew": {}, "mmu_stream": {},
          "mmu_tokens": {}, "mmu_transposer": {}, "mmu_walk": {}, "mmu_weight_fifo_banks": {},
          "mmu_weights": {"ArrayKind": 1}}
# Speed first: structural choices, mapping, then buffers and sizes.
ABC = ("+strash;ifraig;scorr;dc2;dch,-f;map,-B,0.9;topo;buffer,-c;upsize,-D,1;dnsize,-D,1;"
       "stime,-p")


@dataclasses.dataclass
class Block:
    module: str
    parameters: dict
    pe: str = ""
    latency: int = 0  # 0: the same for all


@dataclasses.dataclass
class Mapped:
    delay: float  # ns, or gates
    area: float   # of cells in the library's unit, or their number
    flip_flops: int


def sizes_of(folder, module, size):
    """The sizes of a machine of `size` x `size` PEs that the module has as parameters."""
    text = (folder / f"{module}.sv").read_text(encoding="utf-8")
    return {name: size for name in ("Rows", "Columns")
            if re.search(rf"parameter int unsigned {name} =", text)}


def blocks(folder, latencies, size):
    for pe, parameters in PES.items():
        for latency in latencies:
            yield Block("mmu_pe", parameters | {"Latency": latency}, pe, latency)
    for pe, parameters in PES.items():
        kind = {"PeKind": parameters["PeKind"]}
        for latency in latencies:
            if latency == 1:
                yield Block("mmu_output", kind | {"Columns": 1}, pe, latency)
            elif latency == 2 or 2 not in latencies:
                yield Block("mmu_output_column", kind, pe, latency)
    for module, parameters in OTHERS.items():
        yield Block(module, sizes_of(folder, module, size) | parameters)


def script(folder, block, liberty, mapped):
    files = sorted(folder.glob("mmu_*.sv"),
                   key=lambda f: (f.name != "mmu_pkg.sv", not f.name.endswith("_pkg.sv"), f.name))
    values = "".join(f"chparam -set {name} {value} {block.module}; "
                     for name, value in block.parameters.items())
    map_all = (f"dfflibmap -liberty {liberty}; abc -liberty {liberty} -script {ABC}; "
               f"tee -q -o {mapped} stat -liberty {liberty}") if liberty else (
               f"abc -g AND,OR,XOR,MUX; tee -q -o {mapped} stat; ltp -noff")
    return (f"read_verilog -sv {' '.join(map(str, files))}; {values}"
            f"hierarchy -check -top {block.module}; proc; flatten; opt -fast; chformal -remove; "
            "memory -nomap; wreduce; peepopt; opt_clean; alumacc; share; opt -full; techmap; "
            f"opt -fast; opt_clean; {map_all}")


def map_block(folder, block, liberty):
    with tempfile.TemporaryDirectory() as scratch:
        stat = pathlib.Path(scratch, "stat")
        run = subprocess.run(["yosys", "-p", script(folder, block, liberty, stat)], check=False,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode != 0:
            sys.exit(f"timing.py: Yosys failed on {block}:\n{run.stdout[-2000:]}")
        cells = stat.read_text()
    flip_flops = sum(int(n) for cell, n in re.findall(r"^\s+(\S+)\s+(\d+)$", cells, re.MULTILINE)
                     if re.search(r"dff|dfxtp|_df|DFF|dlxtp|edf", cell))
    if liberty:
        delay = max(float(d) for d in re.findall(r"Delay\s*=\s*([0-9.]+) ps", run.stdout)[-1:])
        area = float(re.search(r"Chip area for .*: ([0-9.]+)", cells)[1])
        return Mapped(delay / 1000, area, flip_flops)
    levels = int(re.search(r"Longest topological path in \S+ \(length=(\d+)\)", run.stdout)[1])
    return Mapped(levels, int(re.search(r"Number of cells:\s+(\d+)", cells)[1]), flip_flops)


def table(name, folder, wanted, liberty):
    workers = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    results = list(workers.map(lambda block: map_block(folder, block, liberty), wanted))
    delay, area = ("ns", "area, µm²") if liberty else ("gates", "cells")
    lines = [f"**{name}**", "",
             f"| block | PE | L | longest path, {delay} | of the PE of L = 1 | {area} | flip-flops |",
             "|---|---|---|---|---|---|---|"]
    unpipelined = {b.pe: r.delay for b, r in zip(wanted, results)
                   if b.module == "mmu_pe" and b.latency == 1}
    for block, result in zip(wanted, results):
        share = (f"{result.delay / unpipelined[block.pe]:.2f}" if block.pe in unpipelined else "")
        latency = "" if block.latency == 0 else "2, 3" if block.module == "mmu_output_column" \
            else str(block.latency)
        number = f"{result.delay:.2f}" if liberty else f"{result.delay:.0f}"
        lines.append(f"| `{block.module}` | {block.pe} | {latency} | {number} | {share} | "
                     f"{result.area:,.0f} | {result.flip_flops:,} |")
    return "\n".join(lines) + "\n"


def unpacked(liberty, scratch):
    """The path of the library as plain text."""
    if liberty.suffix != ".gz":
        return liberty
    plain = pathlib.Path(scratch, liberty.stem)
    with gzip.open(liberty) as packed, open(plain, "wb") as out:
        shutil.copyfileobj(packed, out)
    return plain


def replace_between(page, marks, contents):
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(marks[0])
    _, after = rest.split(marks[1])
    page.write_text(before + marks[0] + contents + marks[1] + after, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rtl", type=pathlib.Path)
    parser.add_argument("--liberty", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--latencies", type=int, nargs="+", choices=(1, 2, 3), default=[1, 2, 3])
    parser.add_argument("--size", type=int, default=16,
                        help="rows and columns of the array whose control is mapped")
    parser.add_argument("--modules", nargs="+", help="only these")
    parser.add_argument("--page", type=pathlib.Path)
    arguments = parser.parse_args()
    if not shutil.which("yosys"):
        print("skipped: Yosys is not installed")
        sys.exit(77)
    wanted = [block for block in blocks(arguments.rtl, arguments.latencies, arguments.size)
              if not arguments.modules or block.module in arguments.modules]
    tables = []
    with tempfile.TemporaryDirectory() as scratch:
        for liberty in arguments.liberty or [None]:
            name = liberty.name.split(".")[0] if liberty else "Gates of two inputs"
            plain = unpacked(liberty, scratch) if liberty else None
            tables.append(table(name, arguments.rtl, wanted, plain))
            print(tables[-1], flush=True)
    if arguments.page:
        replace_between(arguments.page, MARKS, "\n".join(tables))


if __name__ == "__main__":
    main()
