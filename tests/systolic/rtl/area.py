#!/usr/bin/env python3
"""Synthesises the MMU with Yosys and prints an area table, module by module.

area.py RTL_FOLDER [PARAMETER=VALUE ...]: RAMs stay abstract and count in bits.
area.py RTL_FOLDER --top MODULE [PARAMETER=VALUE ...]: one module, such as mmu_pe.
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess
import sys
import tempfile

SMALL = {"Rows": 4, "Columns": 2, "BufferRows": 64, "AccumulatorRows": 32, "QueueDepth": 4,
         "ArrayKind": 1}


def script(folder, top, parameters, before, after):
    files = sorted(folder.glob("mmu_*.sv"), key=lambda f: (not f.name.endswith("_pkg.sv"), f.name))
    files.sort(key=lambda f: f.name != "mmu_pkg.sv")
    values = " ".join(f"-set {name} {value}" for name, value in parameters.items())
    return "; ".join(
        [f"read_verilog -sv {f}" for f in files] +
        [f"chparam {values} {top}"] * bool(parameters) + [f"hierarchy -check -top {top}", "proc",
         "opt -fast", "chformal -remove", f"tee -q -o {before} stat", "wreduce", "peepopt",
         "opt_clean", "alumacc", "opt -fast", "memory -nomap", "opt -fast", "techmap", "opt -fast",
         "abc -fast", "opt_clean", f"tee -q -o {after} stat"])


def read_stat(path):
    """Module -> {"cells": {type: number}, "bits": of its memories}."""
    modules = {}
    for line in path.read_text().splitlines():
        if heading := re.match(r"=== (.*) ===", line):
            module = modules.setdefault(heading[1], {"cells": {}, "bits": 0})
        elif bits := re.match(r"\s+Number of memory bits:\s+(\d+)", line):
            module["bits"] = int(bits[1])
        elif cell := re.match(r"     (\S+)\s+(\d+)$", line):
            module["cells"][cell[1]] = int(cell[2])
    modules.pop("design hierarchy", None)
    return modules


def name_of(module):
    return next((part for part in module.split("\\") if part.startswith("mmu_")), module)


def instances(modules, top):
    """How often each module occurs in the design."""
    counts = {top: 1}
    pending = [top]
    while pending:
        module = pending.pop()
        for cell, count in modules[module]["cells"].items():
            if cell in modules:
                counts[cell] = counts.get(cell, 0) + count * counts[module]
                pending.append(cell)
    return counts


def main():
    folder = pathlib.Path(sys.argv[1])
    module, given = "mmu_top", sys.argv[2:]
    if given[:1] == ["--top"]:
        module, given = given[1], given[2:]
    parameters = (SMALL if module == "mmu_top" else {}) | dict(argument.split("=") for argument in given)
    with tempfile.TemporaryDirectory() as scratch:
        before, after = (pathlib.Path(scratch, name) for name in ("before", "after"))
        subprocess.run(["yosys", "-q", "-p", script(folder, module, parameters, before, after)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rams, modules = read_stat(before), read_stat(after)
    top = next(name for name in modules if name_of(name) == module)
    print(" ".join(f"{name}={value}" for name, value in parameters.items()))
    print(f"{'module':22} {'number':>6} {'gates':>8} {'flip-flops':>10} {'RAM bits':>9}   of one")
    totals = [0, 0, 0]
    counts = instances(modules, top)
    for module in sorted(counts, key=name_of):
        cells = modules[module]["cells"]
        flops = sum(n for cell, n in cells.items() if "DFF" in cell)
        gates = sum(n for cell, n in cells.items() if cell.startswith("$_")) - flops
        bits = rams[module]["bits"]
        print(f"{name_of(module):22} {counts[module]:6} {gates:8} {flops:10} {bits:9}")
        totals = [total + counts[module] * n for total, n in zip(totals, (gates, flops, bits))]
    print(f"{'all':22} {'':6} {totals[0]:8} {totals[1]:10} {totals[2]:9}")
    if totals[0] == 0 or (min(totals) == 0 and name_of(top) == "mmu_top"):
        sys.exit("area.py: the synthesis lost the machine's gates, flip-flops or RAMs")


if __name__ == "__main__":
    main()
