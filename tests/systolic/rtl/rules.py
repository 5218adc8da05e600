#!/usr/bin/env python3
"""Proves the rules (assertions) of the MMU's small modules with yosys-smtbmc and Z3, whatever their
neighbours do within the rules of their ports, and finds inputs that reach each cover.

  rules.py RTL_FOLDER [--faults]

--faults expects the proof to fail where faults are seeded. Exit status 77: yosys-smtbmc or Z3 is
not installed.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Ports: the rules of the module's inputs, which its neighbours keep. Passes: of Yosys, besides.
# Covers: cycles to look for them in.
CASES = [
    {"module": "mmu_queue", "parameters": {"Depth": 5},
     "ports": ["queue_is_not_overrun", "queue_is_not_underrun"], "covers": 12},
    {"module": "mmu_tokens", "ports": ["tokens_taken_are_there"], "covers": 6,
     "passes": ["memory_map", "opt"]},
    {"module": "mmu_reader", "parameters": {"RowBits": 4, "TagBits": 1},
     "ports": ["job_starts_when_ready", "arrivals_were_asked_for", "grants_were_asked_for"]},
    {"module": "mmu_operand", "parameters": {"Columns": 2},
     "ports": ["operands_were_asked_for", "operands_have_arrived",
               "operand_grants_were_asked_for"]},
    {"module": "mmu_loader", "parameters": {"Rows": 3, "Columns": 2, "Tiles": 2},
     "ports": ["swap_finds_weights"], "covers": 16},
    {"module": "mmu_dispatch", "covers": 4},
]

# (what, file, text, its replacement, the module whose proof must fail)
FAULTS = [
    ("a queue forgets a word", "mmu_queue.sv", "count_q + CountBits'(push_i)",
     "count_q + CountBits'(push_i && !pop_i)", "mmu_queue"),
    ("a queue wraps a word late", "mmu_queue.sv", "write_q <= (write_q == LAST)",
     "write_q <= (write_q > LAST)", "mmu_queue"),
    ("a token that is given and taken is lost", "mmu_tokens.sv", "8'(give)",
     "8'(give && !take)", "mmu_tokens"),
    ("requests go on beyond the table", "mmu_reader.sv",
     "request_o = busy_q && (outstanding_q != 8'(Outstanding))", "request_o = busy_q",
     "mmu_reader"),
    ("operands are asked for beyond the memory", "mmu_operand.sv",
     "(asks_left_q != '0) && (taken_q != 7'(Depth));", "asks_left_q != '0;", "mmu_operand"),
    ("weights are full a row early", "mmu_loader.sv", "rows_left_q == 16'd1) full_q",
     "rows_left_q == 16'd2) full_q", "mmu_loader"),
    ("a full queue is filled", "mmu_dispatch.sv", "((unit & full_i) == '0) &&", "", "mmu_dispatch"),
]

SECONDS = 120  # at most, for one run of the solver


def yosys_script(folder, case, target):
    files = sorted(folder.glob("mmu_*.sv"), key=lambda f: (not f.name.endswith("_pkg.sv"), f.name))
    module = case["module"]
    values = " ".join(f"-set {name} {value}" for name, value in case.get("parameters", {}).items())
    ports = " ".join(f"c:{rule}" for rule in case.get("ports", []))
    return "; ".join(
        [f"read_verilog -sv -formal {' '.join(map(str, files))}"] +
        ([f"chparam {values} {module}"] if values else []) +
        [f"prep -top {module} -flatten", "memory_nordff", *case.get("passes", []), "async2sync", "dffunmap"] +
        ([f"chformal -assert2assume {ports}"] if ports else []) +
        [f"tee -q -o {target}.txt stat", f"write_smt2 -wires {target}"])


class Model:
    """One module, ready for the solver."""

    def __init__(self, folder, case, scratch):
        self.case = case
        self.model = pathlib.Path(scratch, "model.smt2")
        run = subprocess.run(["yosys", "-q", "-p", yosys_script(folder, case, self.model)],
                             check=False, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        if run.returncode != 0:
            sys.exit(f"rules.py: Yosys failed on {case['module']}:\n{run.stdout[-2000:]}")
        statistics = pathlib.Path(f"{self.model}.txt").read_text()
        count = re.search(r"\$assert\s+(\d+)", statistics)
        self.rules = int(count[1]) if count else 0
        ports = re.search(r"\$assume\s+(\d+)", statistics)
        if (int(ports[1]) if ports else 0) < len(case.get("ports", [])):
            sys.exit(f"rules.py: {case['module']} lacks one of its ports' rules")
        # Cycle 0 clears; nothing comes in that a cleared neighbour would not send.
        self.start = pathlib.Path(scratch, "start.smtc")
        signals = set(re.findall(r"yosys-smt2-input (\S+) 1$", self.model.read_text(), re.M))
        low = signals & {"rst_ni", "push_i", "pop_i", "start_i", "grant_i", "arrival_i", "read_i"}
        lines = [f"assume [{name}]" for name in signals & {"clear_i"}]
        lines += [f"assume (not [{name}])" for name in sorted(low)]
        self.start.write_text("initial\n" + "\n".join(lines) + "\n")

    def solve(self, *options):
        command = ["timeout", str(SECONDS), "yosys-smtbmc", "-s", "z3", *options, str(self.model)]
        run = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        return f"no verdict within {SECONDS} seconds" if run.returncode == 124 else run.stdout

    def refuted(self):
        """Empty, or what is not proven."""
        log = self.solve("--smtc", str(self.start), "-t", "3")
        if "Status: PASSED" in log:
            log = self.solve("-i", "-t", "2")
        if "Status: PASSED" in log:
            return ""
        rules = sorted(set(re.findall(r"Assert failed in \S+: (\S+)", log)))
        return ", ".join(rules) or log[-500:]

    def covers(self):
        log = self.solve("-c", "--smtc", str(self.start), "-t", str(self.case["covers"]))
        return (set(re.findall(r"Reached cover statement at (\S+) in", log)),
                set(re.findall(r"Unreached cover statement at (\S+)\.$", log, re.M)))


def prove_all(folder):
    wrong = 0
    for case in CASES:
        with tempfile.TemporaryDirectory() as scratch:
            model = Model(folder, case, scratch)
            refuted = model.refuted()
            if model.rules == 0:
                refuted = "has no rules"
            values = " ".join(f"{name}={value}"
                              for name, value in case.get("parameters", {}).items())
            print(f"{case['module']} {values}: " +
                  (f"NOT PROVEN: {refuted}" if refuted else f"{model.rules} rules proven"),
                  flush=True)
            wrong += bool(refuted)
            if "covers" in case:
                reached, missed = model.covers()
                print(f"  {len(reached)} covers reached" +
                      "".join(f"; NOT reached: {name}" for name in sorted(missed)), flush=True)
                wrong += len(missed) + (not reached)
    sys.exit(1 if wrong else 0)


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
            refuted = Model(pathlib.Path(scratch), case, scratch).refuted()
        if not refuted:
            sys.exit(f"{file}, {what}: the rules of {module} are proven in spite of it")
        print(f"{file}, {what}: refuted by {refuted}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rtl", type=pathlib.Path)
    parser.add_argument("--faults", action="store_true")
    arguments = parser.parse_args()
    for program in ("yosys", "yosys-smtbmc", "z3"):
        if not shutil.which(program):
            print(f"skipped: {program} is not installed")
            sys.exit(77)
    if arguments.faults:
        find_faults(arguments.rtl)
    else:
        prove_all(arguments.rtl)


if __name__ == "__main__":
    main()
