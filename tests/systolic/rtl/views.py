#!/usr/bin/env python3
"""Proves with Yosys that the memories' fast views equal those of a memory per bank.

  views.py RTL_FOLDER [--faults]

mmu_buffer and mmu_buffer_banks, mmu_accumulators and mmu_accumulators_banks, mmu_weight_fifo and
mmu_weight_fifo_banks get the same inputs; each register and each word of one is paired with its
like in the other. Proven: whatever comes in, pairs that are equal in one cycle are in the next, and
so are the outputs. --faults expects the proof to fail where faults are seeded. Exit status 77:
Yosys is not installed.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCES = ["mmu_pkg.sv", "mmu_remainder.sv", "mmu_lane.sv", "mmu_sram_1r1w.sv", "mmu_sram_2r1w.sv", "mmu_buffer.sv",
           "mmu_buffer_banks.sv", "mmu_accumulators.sv", "mmu_accumulators_banks.sv",
           "mmu_weight_fifo.sv", "mmu_weight_fifo_banks.sv"]


def buffer_pairs(sizes):
    for name in ("channels", "kernel_width", "group_mask", "whole", "step_dy", "step_dx",
                 "restart_dx", "jump_x", "jump_y"):
        yield f"{name}_q", f"{name}_q"
    for lane in range(sizes["Rows"]):
        if lane + 1 < sizes["Rows"]:  # the last lane's tells nobody
            yield f"first_q[{lane}]", f"gen_lane[{lane}].u_lane.first_q"
        for name in ("y", "x", "address", "dy", "dx", "offset", "channel", "kernel_x", "in_group"):
            yield f"{name}_q[{lane}]", f"gen_lane[{lane}].u_lane.{name}_q"
        for row in range(sizes["BufferRows"]):
            yield (f"memory_q[{lane * sizes['BufferRows'] + row}]",
                   f"gen_lane[{lane}].u_bank.memory_q[{row}]")


def accumulator_pairs(sizes):
    row_bits = (sizes["AccumulatorRows"] - 1).bit_length()
    column_bits = sizes["Columns"].bit_length()
    for stage in range(sizes["Fill"] + sizes["Columns"] + 1):
        for name, bits in (("row_q", row_bits), ("columns_q", column_bits)):
            yield f"{name}[{stage}]", f"{name}[{(stage + 1) * bits - 1}:{stage * bits}]"
    yield "accumulate_q", "accumulate_q"
    for column in range(sizes["Columns"]):
        for row in range(sizes["AccumulatorRows"]):
            for copy in "ab":
                yield (f"memory_q[{column * sizes['AccumulatorRows'] + row}]",
                       f"gen_bank[{column}].u_bank.u_{copy}.memory_q[{row}]")


def weight_pairs(sizes):
    rows = sizes["Rows"] * sizes["Tiles"]
    bits = (rows - 1).bit_length() + 1
    for column in range(1, sizes["Columns"]):
        yield f"ask_q[{column}]", f"ask_q[{column * bits - 1}:{(column - 1) * bits}]"
    for column in range(sizes["Columns"]):
        for row in range(rows):
            yield f"memory_q[{column * rows + row}]", f"gen_bank[{column}].u_bank.memory_q[{row}]"


# module: (sizes, pairs of registers)
VIEWS = {
    "mmu_buffer": ({"Rows": 3, "BufferRows": 4, "ElementBits": 2}, buffer_pairs),
    "mmu_accumulators": ({"Rows": 2, "Columns": 3, "AccumulatorRows": 4, "Lead": 1, "Fill": 5},
                         accumulator_pairs),
    "mmu_weight_fifo": ({"Rows": 2, "Columns": 3, "Tiles": 2, "ElementBits": 2}, weight_pairs),
}

# (what, file, text, its replacement, the module whose proof must fail)
FAULTS = [
    ("a lane keeps the position that enters", "mmu_lane.sv", "enters_i ? y_i : y_q", "y_q",
     "mmu_buffer"),
    ("padding shows the memory while it is written", "mmu_buffer_banks.sv",
     "in_input_q ? element", "(in_input_q || write_i) ? element", "mmu_buffer"),
    ("a tap of the lane before last", "mmu_buffer_banks.sv", "gen_lane[BEFORE].dx",
     "gen_lane[(BEFORE == 0) ? Rows - 1 : BEFORE - 1].dx", "mmu_buffer"),
    ("writes an array row early", "mmu_accumulators_banks.sv",
     ".write_row_i(row_q[(c+Fill+1)*RowBits+:RowBits])", ".write_row_i(row_q[(c+Fill)*RowBits+:RowBits])",
     "mmu_accumulators"),
    ("a chain starts from the sum before", "mmu_accumulators_banks.sv",
     "chained_q[c] ? feedback : 32'd0", "feedback", "mmu_accumulators"),
    ("copy b is not written", "mmu_sram_2r1w.sv", "u_b (\n      .clk_i,\n      .write_i,",
     "u_b (\n      .clk_i,\n      .write_i(1'b0),", "mmu_accumulators"),
    ("disabled weights are enabled", "mmu_weight_fifo_banks.sv",
     "weight[ElementBits] && enabled_q", "weight[ElementBits]", "mmu_weight_fifo"),
    ("all columns ask at once", "mmu_weight_fifo_banks.sv", "ask[c*AskBits+:RowBits]",
     "ask[0+:RowBits]", "mmu_weight_fifo"),
]


def bench(folder, module):
    """Both views on the same inputs."""
    header = (folder / f"{module}.sv").read_text()
    header = header[header.index(f"module {module}"):header.index("\n);\n")]
    outputs = re.findall(r"output logic (\[.*?\]) (\w+)", header)
    sizes = ", ".join(f".{name}({name})" for name in re.findall(r"parameter int unsigned (\w+)",
                                                                header))
    text = header.replace(f"module {module}", "module views_bench")
    text = re.sub(r"output logic (\[.*?\]) (\w+)_o", r"output logic \1 \2_fast_o", text)
    text += "".join(f",\n    output logic {width} {name[:-2]}_banks_o" for width, name in outputs)
    inputs = re.findall(r"input logic (?:\[.*?\] )?(\w+)", header)
    text += "\n);\n"
    for view, suffix in (("fast", ""), ("banks", "_banks")):
        ports = [f".{name}" for name in inputs]
        ports += [f".{name}({name[:-2]}_{view}_o)" for _, name in outputs]
        text += f"  {module}{suffix} #({sizes}) u_{view} ({', '.join(ports)});\n"
    return text + "endmodule\n", [name[:-2] for _, name in outputs]


def prove(folder, module):
    """The number of pairs of bits, and the names of the registers of which some bit is unproven."""
    sizes, pairs = VIEWS[module]
    with tempfile.TemporaryDirectory() as scratch:
        text, outputs = bench(folder, module)
        source = pathlib.Path(scratch, "views_bench.sv")
        source.write_text(text)
        script = pathlib.Path(scratch, "views.ys")
        script.write_text("\n".join(
            [f"read_verilog -sv {' '.join(str(folder / name) for name in SOURCES)} {source}",
             "chparam " + " ".join(f"-set {name} {value}" for name, value in sizes.items()) +
             " views_bench",
             "hierarchy -check -top views_bench", "proc", "flatten", "chformal -remove",
             "opt_clean", "memory_map", "opt_clean", "cd views_bench"] +
            [f"equiv_add u_fast.{fast} u_banks.{banks}" for fast, banks in pairs(sizes)] +
            [f"equiv_add {name}_fast_o {name}_banks_o" for name in outputs] +
            ["opt_clean", "opt_expr -mux_undef", "opt_merge", "opt_clean", "techmap", "opt",
             "equiv_induct -seq 1", "equiv_status", ""]))
        log = subprocess.run(["yosys", "-T", "-s", str(script)], check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    found = re.search(r"Found (\d+) \$equiv cells in views_bench", log)
    proven = "Equivalence successfully proven!" in log
    unproven = set(re.findall(r"Unproven \$equiv \S+: \\(?:u_fast\.)?(\w+)", log))
    if not found or proven == bool(unproven):
        sys.exit(f"views.py: Yosys did not get to a verdict on {module}:\n{log[-2000:]}")
    return int(found[1]), unproven


def find_faults(folder):
    for what, file, text, replacement, module in FAULTS:
        with tempfile.TemporaryDirectory() as scratch:
            for source in SOURCES:
                shutil.copy(folder / source, scratch)
            faulty = pathlib.Path(scratch, file)
            contents = faulty.read_text()
            if contents.count(text) != 1:
                sys.exit(f"views.py: '{text}' does not stand exactly once in {file}")
            faulty.write_text(contents.replace(text, replacement))
            _, unproven = prove(pathlib.Path(scratch), module)
        if not unproven:
            sys.exit(f"{file}, {what}: the views of {module} are proven equal in spite of it")
        print(f"{file}, {what}: refuted at {', '.join(sorted(unproven))}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rtl", type=pathlib.Path)
    parser.add_argument("--faults", action="store_true")
    arguments = parser.parse_args()
    if not shutil.which("yosys"):
        print("skipped: Yosys is not installed")
        sys.exit(77)
    if arguments.faults:
        find_faults(arguments.rtl)
        return
    for module, (sizes, _) in VIEWS.items():
        bits, unproven = prove(arguments.rtl, module)
        text = " ".join(f"{name}={value}" for name, value in sizes.items())
        if unproven:
            sys.exit(f"{module} {text}: the views may come to differ in "
                     f"{', '.join(sorted(unproven))}, starting from equal registers")
        print(f"{module} {text}: equal, {bits} pairs of bits", flush=True)


if __name__ == "__main__":
    main()
