#!/usr/bin/env python3
"""Maps every memory of the MMU to the RAMs of three FPGA families with Yosys and prints what became
of it; fails where a memory became flip-flops or more RAMs than its bits need.

  memories.py RTL_FOLDER

Exit status 77: Yosys is not installed.
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Family: the command up to the mapping of memories.
FAMILIES = {"xilinx": "synth_xilinx -flatten -noiopad -run begin:fine",
            "ecp5": "synth_ecp5 -run begin:map_gates",
            "ice40": "synth_ice40 -run begin:map_gates"}
BLOCK_RAMS = {"xilinx": "RAMB18E1", "ecp5": "DP16KD", "ice40": "SB_RAM40_4K"}

# (module, parameters, block RAMs by family, most bits of flip-flops). Where block RAMs are 0, the
# family's LUTs hold the memory; iCE40 has no such LUTs, so that what is read at once (queues) is
# flip-flops there. The flip-flops are those of addresses and counters, and what a family
# needs beside its RAMs to show the old value where a word is read and written at once.
CASES = [
    ("mmu_accumulators_banks", {"Rows": 4, "Columns": 4, "AccumulatorRows": 512},
     {"xilinx": 8, "ecp5": 8, "ice40": 32}, 600),
    ("mmu_buffer_banks", {"Rows": 4, "BufferRows": 1024, "ElementBits": 16},
     {"xilinx": 4, "ecp5": 4, "ice40": 16}, 800),
    ("mmu_weight_fifo_banks", {"Rows": 16, "Columns": 4, "Tiles": 4, "ElementBits": 16},
     {"xilinx": 0, "ecp5": 0, "ice40": 8}, 200),
    ("mmu_operand", {"Columns": 4}, {"xilinx": 0, "ecp5": 4, "ice40": 8}, 500),
    ("mmu_queue", {"Depth": 16}, {"xilinx": 0, "ecp5": 0}, 100),
    ("mmu_reader", {"RowBits": 13, "TagBits": 8}, {"xilinx": 1, "ecp5": 1, "ice40": 2}, 400),
]


def synthesise(folder, module, parameters, family):
    """Cells by type, and the bits of flip-flops, of one module."""
    files = sorted(folder.glob("mmu_*.sv"), key=lambda f: (not f.name.endswith("_pkg.sv"), f.name))
    values = " ".join(f"-set {name} {value}" for name, value in parameters.items())
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as statistics:
        script = "; ".join([f"read_verilog -sv {' '.join(map(str, files))}",
                            f"chparam {values} {module}", "chformal -remove",
                            f"{FAMILIES[family]} -top {module}",
                            f"tee -q -o {statistics.name} stat -width"])
        run = subprocess.run(["yosys", "-q", "-p", script], check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode != 0:
            sys.exit(f"memories.py: Yosys failed on {module}:\n{run.stdout[-2000:]}")
        found = re.findall(r"^     (\S+)\s+(\d+)$", statistics.read(), re.MULTILINE)
    cells = {cell: int(number) for cell, number in found}
    flops = sum(number * int(width[1]) for cell, number in cells.items()
                if (width := re.fullmatch(r"\$\w*dffs?r?e?_(\d+)", cell)))
    return cells, flops


def problems_of(family, cells, flops, rams, most_flops):
    if any(cell.startswith("$mem") for cell in cells):
        yield "a memory was not mapped"
    if cells.get(BLOCK_RAMS[family], 0) != rams:
        yield f"{rams} {BLOCK_RAMS[family]} expected"
    if rams == 0 and not any("RAM" in cell or "DPR" in cell for cell in cells):
        yield "neither block RAM nor LUT RAM"
    if flops > most_flops:
        yield f"at most {most_flops} bits of flip-flops expected"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("yosys"):
        print("skipped: Yosys is not installed")
        sys.exit(77)
    wrong = 0
    for module, parameters, rams, most_flops in CASES:
        print(module, " ".join(f"{name}={value}" for name, value in parameters.items()))
        for family in rams:
            cells, flops = synthesise(pathlib.Path(sys.argv[1]), module, parameters, family)
            names = ", ".join(f"{number} {cell}" for cell, number in sorted(cells.items())
                              if "RAM" in cell or cell.startswith(("DP", "TRELLIS")))
            print(f"  {family:7} {names}, {flops} bits of flip-flops", flush=True)
            for problem in problems_of(family, cells, flops, rams[family], most_flops):
                print(f"  {family:7} wrong: {problem}")
                wrong += 1
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
