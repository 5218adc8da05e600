#!/usr/bin/env python3
"""Proves with Yosys that the two views of the array, mmu_array and mmu_array_grid, are equal.

  equivalence.py RTL_FOLDER [--pe bf16|int8 ...] [--sizes 2x2 4x4 ...] [--latencies 1 2 3]
                 [--faults]

Each register of one view is paired with its like in the other. Proven: whatever comes in, pairs
that are equal in one cycle are in the next, and so are the outputs, which are registers. --faults
expects the proof to fail where faults are seeded. Exit status 77: Yosys is not installed.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCES = ["mmu_arithmetic_pkg.sv", "mmu_stages_pkg.sv", "mmu_array.sv", "mmu_array_grid.sv", "mmu_pe.sv"]
BENCH = pathlib.Path(__file__).with_name("array_bench.sv")
PES = {"bf16": (0, 16), "int8": (1, 8)}

# (what, file, text, its replacement, the registers that must differ then)
FAULTS = [
    ("all columns swap with the first", "mmu_array.sv",
     "if (swap_q[r][c])", "if (swap_q[r][0])", {"active_q"}),
    ("a disabled weight multiplies", "mmu_array.sv",
     "weight[ElementBits] ? sum : psum_q[Rows-1-i][c]", "sum", {"psum_q", "bottom_q"}),
    ("activations updated along their way", "mmu_array.sv",
     "act_q[r][Columns-1-i] = act_q[r][Columns-2-i]", "act_q[r][i+1] = act_q[r][i]", {"act_q"}),
    ("weights captured with the sums' enable", "mmu_array.sv",
     "if (capture_q[Rows-1-i][c])", "if (capture_q[Rows-1-i][c] && enable_i)", {"shadow_q"}),
    ("the swap overtakes the last value", "mmu_array.sv",
     "weight = active_q[Rows-1-i][c];",
     "weight = swap_i[Rows-1-i] ? shadow_q[Rows-1-i][c] : active_q[Rows-1-i][c];",
     {"psum_q", "bottom_q"}),
    ("a weight becomes active as it is captured", "mmu_pe.sv",
     "active_q <= shadow_q", "active_q <= capture_i ? weight_i : shadow_q", {"active_q"}),
    ("negative activations lose their sign", "mmu_pe.sv",
     "multiply_add_int8(act_q[7:0]", "multiply_add_int8({1'b0, act_q[6:0]}",
     {"psum_q", "bottom_q"}),
    ("a row's tokens come from the one above", "mmu_array_grid.sv",
     "capture[r][0] = capture_i[r]", "capture[r][0] = capture_i[(r == 0) ? 0 : r - 1]",
     {"capture_q", "shadow_q"}),
]


# Registers inside a PE whose sums take so many cycles, as mmu_pe names them; the tags are bf16's.
STAGES = {1: [], 2: ["gen_stages.product_q", "gen_stages.sum_q", "gen_stages.sum_tag_q"]}
STAGES[3] = STAGES[2] + [f"gen_stages.gen_three.{name}" for name in ("big_q", "little_q", "tag_q")]


def pairs(pe_kind, rows, columns, latency):
    """Every register of mmu_array that is read, beside its like in the grid of PEs."""
    for row in range(rows):
        for column in range(columns):
            pe = f"u_grid.gen_row[{row}].gen_column[{column}].u_pe."
            index = row * columns + column
            yield f"act_q[{index}]", pe + "act_q"
            yield f"shadow_q[{index}]", pe + "shadow_q"
            yield f"active_q[{index}]", pe + "active_q"
            for stage in STAGES[latency]:
                if pe_kind == "bf16" or not stage.endswith(".tag_q"):
                    yield f"{stage.split('.')[-1]}[{index}]", pe + stage
            if row + 1 < rows:
                yield f"weight_q[{index}]", pe + "weight_q"
                yield f"psum_q[{index + columns}]", pe + "psum_q"
            else:
                yield f"bottom_q[{32 * column + 31}:{32 * column}]", pe + "psum_q"
            if column + 1 < columns:
                yield f"swap_q[{row}][{column}]", pe + "swap_q"
                yield f"capture_q[{row}][{column}]", pe + "capture_q"


def script(folder, pe_kind, rows, columns, latency):
    """One $equiv cell drives what each pair drove: the arithmetic of both views then has
    the same inputs and is merged. Muxes of undefined values are those of branches not taken. The
    induction sees registers, muxes and tokens only: merged arithmetic is any function to it."""
    kind, bits = PES[pe_kind]
    files = " ".join(str(folder / source) for source in SOURCES)
    return "\n".join(
        [f"read_verilog -sv {files} {BENCH}",
         f"chparam -set Rows {rows} -set Columns {columns} -set PeKind {kind} "
         f"-set ElementBits {bits} -set Latency {latency} array_bench",
         "hierarchy -check -top array_bench", "proc", "flatten", "opt_clean", "cd array_bench"] +
        [f"equiv_add u_block.{block} {grid}" for block, grid in pairs(pe_kind, rows, columns, latency)] +
        ["equiv_add block_o grid_o", "opt_clean", "opt_expr", "opt_merge", "opt_clean",
         "opt_expr -mux_undef", "simplemap t:$dff t:$mux", "opt_expr -mux_undef", "opt_merge",
         "opt_clean", "equiv_induct -seq 1 t:$equiv t:$_DFF_P_ t:$_MUX_ t:$or t:$reduce_bool",
         "equiv_status", ""])


def prove(folder, pe_kind, rows, columns, latency=1):
    """The number of pairs of bits, and the names of the registers of which some bit is unproven."""
    with tempfile.NamedTemporaryFile("w", suffix=".ys") as commands:
        commands.write(script(folder, pe_kind, rows, columns, latency))
        commands.flush()
        log = subprocess.run(["yosys", "-T", "-s", commands.name], check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    found = re.search(r"Found (\d+) \$equiv cells in array_bench", log)
    proven = "Equivalence successfully proven!" in log
    unproven = set(re.findall(r"Unproven \$equiv \S+: \\u_block\.(\w+)", log))
    if not found or proven == bool(unproven):
        sys.exit(f"equivalence.py: Yosys did not get to a verdict:\n{log[-2000:]}")
    return int(found[1]), unproven


def prove_all(folder, pe_kinds, sizes, latencies):
    for pe_kind, size, latency in itertools.product(pe_kinds, sizes, latencies):
        bits, unproven = prove(folder, pe_kind, *map(int, size.split("x")), latency)
        name = f"{pe_kind} {size}, latency {latency}"
        if unproven:
            sys.exit(f"{name}: mmu_array and mmu_array_grid may come to differ in "
                     f"{', '.join(sorted(unproven))}, starting from equal registers")
        print(f"{name}: equal, {bits} pairs of register bits")


def find_faults(folder):
    for what, file, text, replacement, registers in FAULTS:
        with tempfile.TemporaryDirectory() as scratch:
            for source in SOURCES:
                shutil.copy(folder / source, scratch)
            faulty = pathlib.Path(scratch, file)
            contents = faulty.read_text()
            if contents.count(text) != 1:
                sys.exit(f"equivalence.py: '{text}' does not stand exactly once in {file}")
            faulty.write_text(contents.replace(text, replacement))
            _, unproven = prove(pathlib.Path(scratch), "int8", 2, 3)
        if not unproven or unproven - registers:
            sys.exit(f"{file}, {what}: expected a difference in {sorted(registers)} only, "
                     f"found {sorted(unproven)}")
        print(f"{file}, {what}: refuted at {', '.join(sorted(unproven))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rtl", type=pathlib.Path)
    parser.add_argument("--pe", nargs="+", choices=PES, default=list(PES))
    parser.add_argument("--sizes", nargs="+", default=["2x2", "4x4"])
    parser.add_argument("--latencies", nargs="+", type=int, choices=STAGES, default=[1])
    parser.add_argument("--faults", action="store_true")
    arguments = parser.parse_args()
    if not shutil.which("yosys"):
        print("skipped: Yosys is not installed")
        sys.exit(77)
    if arguments.faults:
        find_faults(arguments.rtl)
    else:
        prove_all(arguments.rtl, arguments.pe, arguments.sizes, arguments.latencies)


if __name__ == "__main__":
    main()
