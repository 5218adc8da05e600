#!/usr/bin/env python3
"""Proves the rules (assertions) of the MMU's small modules with Yosys, whatever their neighbours do
within the rules of their ports.

  rules.py RTL_FOLDER [--faults]

A module is cleared in its first cycle. Then, by temporal induction with no bound of cycles, every
assertion in it holds, also those that stand there for the proof only (`ifdef FORMAL). --faults
expects the proof to fail where faults are seeded. Exit status 77: Yosys is not installed.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PARTS = ["mmu_check", "mmu_owners", "mmu_sram_1r1w", "mmu_walk"]  # of the modules below

# Ports: the rules of the module's inputs, which its neighbours keep.
CASES = [
    {"module": "mmu_queue", "parameters": {"Depth": 5},
     "ports": ["queue_is_not_overrun", "queue_is_not_underrun"]},
    {"module": "mmu_tokens", "ports": ["tokens_taken_are_there"]},
    {"module": "mmu_reader", "parameters": {"RowBits": 4, "TagBits": 1},
     "ports": ["job_starts_when_ready", "arrivals_were_asked_for", "grants_were_asked_for"]},
    {"module": "mmu_operand", "parameters": {"Columns": 2},
     "ports": ["operands_were_asked_for", "operands_have_arrived",
               "operand_grants_were_asked_for"]},
    {"module": "mmu_loader", "parameters": {"Rows": 3, "Columns": 2, "Tiles": 2},
     "ports": ["swap_finds_weights"]},
    {"module": "mmu_loader",
     "parameters": {"Rows": 3, "Columns": 2, "Tiles": 2, "OutputStationary": 1},
     "ports": ["swap_finds_weights", "streams_find_their_tile"]},
    {"module": "mmu_dispatch"},
    {"module": "mmu_remainder", "parameters": {"Modulus": 12}},
    {"module": "mmu_remainder", "parameters": {"Modulus": 255}},
    {"module": "mmu_axi_read", "parameters": {"RowBytes": 20, "Outstanding": 4, "MaxBeats": 8},
     "ports": ["beats_were_asked_for", "rows_fit_the_port"]},
    {"module": "mmu_axi_write",
     "parameters": {"RowBytes": 20, "Outstanding": 4, "MaxBeats": 4, "Reads": 1},
     "ports": ["answers_were_asked_for", "rows_fit_the_port"]},
    {"module": "mmu_arbiter", "parameters": {"Arrays": 3, "Reads": 4},
     "ports": ["requests_stand", "answers_were_asked_for"]},
    {"module": "mmu_arbiter", "parameters": {"Arrays": 8, "Reads": 2},
     "ports": ["requests_stand", "answers_were_asked_for"]},
]

CLEARED = {"mmu_dispatch": "-set-at 1 rst_ni 0", "mmu_remainder": ""}  # no register

# (what, file, text, its replacement, the module whose proof must fail)
FAULTS = [
    ("a queue forgets a word", "mmu_queue.sv", "count_q + CountBits'(push_i)",
     "count_q + CountBits'(push_i && !pop_i)", "mmu_queue"),
    ("a queue wraps a word late", "mmu_queue.sv", "write_q <= (write_q == LAST)",
     "write_q <= (write_q > LAST)", "mmu_queue"),
    ("a token that is given and taken is lost", "mmu_tokens.sv", "8'(give)", "8'(give && !take)",
     "mmu_tokens"),
    ("requests go on beyond the table", "mmu_reader.sv",
     "request_o = busy_q && (outstanding_q != 8'(Outstanding))", "request_o = busy_q",
     "mmu_reader"),
    ("operands are asked for beyond the memory", "mmu_operand.sv",
     "(asks_left_q != '0) && (taken_q != 7'(Depth));", "asks_left_q != '0;", "mmu_operand"),
    ("weights are full a row early", "mmu_loader.sv", "(rows_left_q == 16'd1))) full_q",
     "(rows_left_q == 16'd2))) full_q", "mmu_loader"),
    ("a remainder equals the modulus", "mmu_remainder.sv", "(sum >= (RemainderBits",
     "(sum > (RemainderBits", "mmu_remainder"),
    ("a burst leaves its block", "mmu_axi_read.sv", "if (more) end_d", "if (1'b0) end_d",
     "mmu_axi_read"),
    ("an address changes while it waits", "mmu_axi_read.sv",
     "range_q && (!arvalid_q || arready_i)", "range_q", "mmu_axi_read"),
    ("a shared beat is read once", "mmu_axi_read.sv", "(count_q > CountBits'(1)) &&", "1'b0 &&",
     "mmu_axi_read"),
    ("a written burst leaves its block", "mmu_axi_write.sv",
     " && (held_at_q[BeatBits-1:0] != '1)", "", "mmu_axi_write"),
    ("a burst ends a beat late", "mmu_axi_write.sv", "wlast_o = beat_q == burst_beats",
     "wlast_o = beat_q > burst_beats", "mmu_axi_write"),
    ("more bursts are open than the table holds", "mmu_axi_write.sv",
     "(pending != CountBits'(Outstanding));", "1'b1;", "mmu_axi_write"),
    ("a full queue is filled", "mmu_dispatch.sv", "((unit & full_i) == '0) &&", "", "mmu_dispatch"),
    ("low arrays come first", "mmu_arbiter.sv", "a = 32'(turn_q) + i;", "a = i;", "mmu_arbiter"),
    ("a turn does not end", "mmu_arbiter.sv", "(requests != '0) && (grant == '0)",
     "(requests != '0)", "mmu_arbiter"),
    ("a turn ends without a grant", "mmu_arbiter.sv", "(requests != '0) && (grant == '0)", "1'b0",
     "mmu_arbiter"),
    ("an array without a request has the turn", "mmu_arbiter.sv",
     "if (!held_q && requests[a[ArrayBits-1:0]])", "if (!held_q)", "mmu_arbiter"),
    ("every array sees a grant", "mmu_arbiter.sv", "(turn == ArrayBits'(a)) ? (ready_i & ~full)",
     "1'b1 ? (ready_i & ~full)", "mmu_arbiter"),
    ("reads are granted beyond the queue", "mmu_arbiter.sv", "+:4] & ~full;\n  assign grant",
     "+:4];\n  assign grant", "mmu_arbiter"),
    ("a free port waits", "mmu_arbiter.sv", "assign grant = request_o & ready_i;",
     "assign grant = request_o & {ready_i[3:1], ready_i[0] && !request_o[1]};", "mmu_arbiter"),
    ("an answer reaches the last owner", "mmu_owners.sv", "owner_o = memory_q[read_q]",
     "owner_o = memory_q[write_q - 1'b1]", "mmu_arbiter"),
    ("an owner stays behind its answer", "mmu_owners.sv", "read_q + SlotBits'(pop_i)",
     "read_q + SlotBits'(pop_i && !push_i)", "mmu_arbiter"),
    ("an owner is forgotten", "mmu_owners.sv", "write_q + SlotBits'(push_i)",
     "write_q + SlotBits'(push_i && !pop_i)", "mmu_arbiter"),
]


def script(folder, case, log):
    module = case["module"]
    files = [folder / f"{name}.sv" for name in ("mmu_pkg", *PARTS, module)]
    values = " ".join(f"-set {name} {value}" for name, value in case.get("parameters", {}).items())
    ports = " ".join(f"c:{rule}" for rule in case.get("ports", []))
    cleared = CLEARED.get(module, "-set-at 1 clear_i 1")
    return "; ".join(
        [f"read_verilog -sv -formal {' '.join(map(str, files))}"] +
        ([f"chparam {values} {module}"] if values else []) +
        [f"prep -top {module} -flatten", "memory_map", "opt", "async2sync", "dffunmap"] +
        ([f"chformal -assert2assume {ports}"] if ports else []) +
        ["chformal -cover -remove", f"tee -q -o {log} stat",
         f"tee -q -a {log} sat -tempinduct -prove-asserts -set-assumes -maxsteps 4 {cleared} "
         f"-seq 1 -show-public {module}"])


def prove(folder, case):
    """The number of rules, and whether they are proven."""
    with tempfile.NamedTemporaryFile("r", suffix=".log") as log:
        run = subprocess.run(["yosys", "-q", "-p", script(folder, case, log.name)], check=False,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = log.read()
    count = {kind: int(found[1]) if (found := re.search(rf"\${kind}\s+(\d+)", text)) else 0
             for kind in ("assert", "assume")}
    proven = "Induction step proven: SUCCESS!" in text
    refuted = "model found for base case: FAIL!" in text or "reached maximum" in text.lower()
    if run.returncode != 0 or proven == refuted:
        sys.exit(f"rules.py: Yosys did not get to a verdict on {case['module']}:\n"
                 f"{text[-1500:]}{run.stdout[-1500:]}")
    if count["assume"] != len(case.get("ports", [])) or count["assert"] == 0:
        sys.exit(f"rules.py: {case['module']} has not the rules that are to be proven")
    return count["assert"], proven


def prove_all(folder):
    for case in CASES:
        rules, proven = prove(folder, case)
        values = " ".join(f"{name}={value}" for name, value in case.get("parameters", {}).items())
        if not proven:
            sys.exit(f"{case['module']} {values}: not all of its {rules} rules are proven")
        print(f"{case['module']} {values}: {rules} rules proven", flush=True)


def find_faults(folder):
    for what, file, text, replacement, module in FAULTS:
        with tempfile.TemporaryDirectory() as scratch:
            for source in folder.glob("mmu_*.sv"):
                shutil.copy(source, scratch)
            faulty = pathlib.Path(scratch, file)
            contents = faulty.read_text()
            if contents.count(text) != 1:
                sys.exit(f"rules.py: '{text}' does not stand exactly once in {file}")
            faulty.write_text(contents.replace(text, replacement))
            case = next(case for case in CASES if case["module"] == module)
            if prove(pathlib.Path(scratch), case)[1]:
                sys.exit(f"{file}, {what}: the rules of {module} are proven in spite of it")
        print(f"{file}, {what}: refuted", flush=True)


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
    else:
        prove_all(arguments.rtl)


if __name__ == "__main__":
    main()
