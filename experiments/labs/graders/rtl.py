"""A student's SystemVerilog under Verilator, for graders."""
# SPDX-License-Identifier: Apache-2.0
from grading import BUILD, Hidden

# Registers and unassigned signals begin with random bits. Delays and waits would need an event queue, unlike hardware.
VERILATOR = ("verilator --cc --exe --no-timing -Wno-fatal -Wno-lint -Wno-style --x-assign unique --x-initial unique "
             "--top-module lab_bench --prefix Vlab --Mdir model").split()
MAKE = "make -s -j2 -C model -f Vlab.mk OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0".split()
SEEDS = 8  # stream of a seed for the simulation


def build_and_run(bench, files, seed, report):
    """Builds the files on the bench, with a top module lab_bench (clk_i, rst_i, done_o), clocks it until done_o is high
    and reports its output. Returns why the run failed, in the tools' words. Empty: it reached its end."""
    bench.require("g++")  # Verilator's makefile uses it
    bench.put("main.cpp", bench.lab_text("benches/array_main.cpp.in"))
    ending = bench.run(*VERILATOR, *files, "main.cpp", **BUILD)
    if not ending.good:
        return problem("Verilator", ending)
    bench.put_verilator_runtime(VERILATOR, MAKE, **BUILD)
    ending = bench.run(*MAKE, **BUILD)
    if not ending.good:
        return problem("the model's compilation", ending)
    # The code can read its command line, so that the number on it is drawn from the seed.
    ending = bench.run("model/Vlab", "+verilator+rand+reset+2",
                       f"+verilator+seed+{Hidden(seed, SEEDS).bits() // 2 + 1}")
    report.printed(ending.printed)
    return "" if ending.good else problem("the simulation", ending)


def problem(name, ending):
    lines = (ending.error or ending.printed).splitlines()[:8]
    return f"{name} {ending.said}:\n" + "\n".join(lines)


def log_lines(text):
    """The lines of a bench's log, (kind, number, number, number), up to the first damaged one."""
    for line in text.splitlines():
        kind, *numbers = line.split() or [""]
        try:
            first, second, third = map(int, numbers)
        except ValueError:
            return
        yield kind, first, second, third
