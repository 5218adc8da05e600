#!/usr/bin/env python3
"""Maps every unit of whole machines to a library of gates: longest paths and the clocks they allow.

  machine_timing.py RTL_FOLDER --liberty FILE[.gz] --machines MACHINE.json[:ROWSxCOLUMNS] ...
                    [--page FILE]

Every unit has the parameters of its machine. Units that repeat themselves in each row or column are
mapped with two of them. Memories stay abstract, wires and the registers' own times are left out.
--page puts the table between the marks of a page. Exit status 77: Yosys is not installed.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

import timing

MARKS = ("<!-- machine table begin -->\n", "<!-- machine table end -->\n")
# Units, and the parameters of those that repeat themselves.
UNITS = {"mmu_dispatch": {}, "mmu_queue": {}, "mmu_tokens": {}, "mmu_load": {}, "mmu_fill": {},
         "mmu_weight_path": {"Columns": 2}, "mmu_compute": {}, "mmu_stream": {}, "mmu_lane": {},
         "mmu_transposer": {"Rows": 2}, "mmu_accumulators_banks": {"Columns": 2},
         "mmu_store": {"Columns": 2}, "mmu_counters": {}}


def load_machine(text):
    """A machine file, with other rows and columns if they are given."""
    name, _, size = text.partition(":")
    machine = json.loads(pathlib.Path(name).read_text(encoding="utf-8"))
    if size:
        machine["rows"], machine["columns"] = map(int, size.split("x"))
        machine["name"] += f", {machine['rows']} × {machine['columns']}"
    return machine


def parameters_of(machine):
    """By the names that they have in the modules."""
    rows, latency = machine["rows"], machine.get("pe_latency", 1)
    int8 = machine["pe"] == "int8"
    chain = rows * latency
    return {"Rows": rows, "Columns": machine["columns"], "PeKind": int(int8), "PeLatency": latency,
            "Latency": latency, "ElementBits": 8 if int8 else 16, "Chain": chain,
            "Fill": chain + (latency > 1), "TimeBits": 20, "ArrayKind": 1,
            "BufferRows": machine["buffer_rows"],
            "AddressBits": machine["buffer_rows"].bit_length() - 1,
            "AccumulatorRows": machine["accumulator_rows"], "Tiles": machine["weight_tiles"],
            "Arrays": machine.get("arrays", 1), "Depth": machine["queue_depth"], "VectorRows": machine.get("vector_rows", 0),
            "OutputStationary": int(machine.get("dataflows", "weight-stationary") !=
                                    "weight-stationary")}


def blocks(folder, machine):
    values = parameters_of(machine)
    pe = "mmu_pe_dual" if values["OutputStationary"] else "mmu_pe"
    units = UNITS | ({"mmu_arbiter": {}} if values["Arrays"] > 1 else {})
    units |= {"mmu_vector": {"Columns": 2}} if values["VectorRows"] else {}
    for module, repeated in {pe: {}, **units}.items():
        text = (folder / f"{module}.sv").read_text(encoding="utf-8")
        names = re.findall(r"parameter int unsigned (\w+) =", text)
        yield timing.Block(module, {n: (values | repeated)[n] for n in names if n in values})


def key_of(block):
    return block.module, tuple(sorted(block.parameters.items()))


def table(machines, delays):
    """`delays`: for each machine, the delay of each unit."""
    lines = ["| longest path, ns | " + " | ".join(m["name"] for m in machines) + " |",
             "|---|" + "---|" * len(machines)]
    units = list(dict.fromkeys(unit for d in delays for unit in d))
    for unit in units:
        cells = (f"{d[unit]:.2f}" if unit in d else "" for d in delays)
        lines.append(f"| `{unit}` | " + " | ".join(cells) + " |")
    longest = [max(d.values()) for d in delays]
    lines.append("| **MHz of the longest** | " +
                 " | ".join(f"**{1000 / path:.0f}**" for path in longest) + " |")
    lines.append("| clock of the file, MHz | " +
                 " | ".join(f"{m['clock_mhz']:g}" + (" (target)" if 1000 / path < m["clock_mhz"]
                                                     else "")
                            for m, path in zip(machines, longest)) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rtl", type=pathlib.Path)
    parser.add_argument("--liberty", type=pathlib.Path)
    parser.add_argument("--machines", nargs="+", required=True)
    parser.add_argument("--page", type=pathlib.Path)
    arguments = parser.parse_args()
    if not shutil.which("yosys"):
        print("skipped: Yosys is not installed")
        sys.exit(77)
    machines = [load_machine(text) for text in arguments.machines]
    wanted = [list(blocks(arguments.rtl, machine)) for machine in machines]
    distinct = {key_of(block): block for of_machine in wanted for block in of_machine}
    with tempfile.TemporaryDirectory() as scratch:
        plain = timing.unpacked(arguments.liberty, scratch) if arguments.liberty else None
        workers = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        mapped = dict(zip(distinct, workers.map(
            lambda block: timing.map_block(arguments.rtl, block, plain), distinct.values())))
    delays = [{block.module: mapped[key_of(block)].delay for block in of_machine}
              for of_machine in wanted]
    if plain is None:  # counted in gates
        print(json.dumps(delays))
        return
    text = f"**{arguments.liberty.name.split('.')[0]}**\n\n" + table(machines, delays)
    print(text)
    if arguments.page:
        timing.replace_between(arguments.page, MARKS, text)


if __name__ == "__main__":
    main()
