"""Grader of lab 4: tests that a student writes for the array's RTL. Each is a program with its inputs and expected
outputs. It must pass on the unchanged RTL and fail on copies with a fault. Some faults are shown, some are hidden."""
# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple

from grading import BUILD, CannotGrade, Refused

MOST_TESTS, MOST_BYTES = 32, 64 << 10
MOST_CYCLES = 1200  # of all tests together
LONGEST = 5000  # cycles of one, before it counts as endless
HIDDEN_OF_A_PLACE = 2
FOUND_AT_LEAST = 6  # of the faults shown, before a missing false alarm is worth points
EXAMPLE, MACHINE, HANDOUT = "example.s", "machine.json", "handouts/4-verifier/"

ARITHMETIC, ADDRESSES, TILES, CONTROL = PLACES = (
    "the arithmetic", "the addresses", "the tiles and the output unit", "the control")


class Fault(NamedTuple):
    name: str
    place: str
    promise: str  # of the handout's table that it breaks
    module: str
    right: str  # an expression, once in the module
    wrong: str
    words: str  # description of the mistake


# The handout's table has these, in the same order.
SHOWN = [
    Fault("group_of_one", ADDRESSES, "taps", "mmu_lane",
          "((before_channel_i & group_mask_i) == group_mask_i)", "1'b1",
          "each channel lies in a buffer row of its own, not a group of them"),
    Fault("ties_away", ARITHMETIC, "sums", "mmu_arithmetic_pkg",
          "((sum & 32'h0000_017F) != 32'd0)", "1'b1",
          "a sum in the middle between two numbers goes up, not to the even one"),
    Fault("relu_hides_nan", ARITHMETIC, "output", "mmu_arithmetic_pkg",
          "(x[31] && !(is_float && ((x & 32'h7FFF_FFFF) > INFINITY)))",
          "(x[31] || (is_float && ((x & 32'h7FFF_FFFF) > INFINITY)))", "ReLU makes 0 of a NaN"),
    Fault("always_feedback", TILES, "accumulate", "mmu_accumulators_banks",
          "accumulate_q[Columns+Lead-1:Lead]", "{Columns{1'b1}}",
          "a chain begins at what the bank read last, also without accumulate"),
    Fault("columns_beyond_the_tile", TILES, "tiles", "mmu_accumulators_banks",
          "(ColumnBits'(c) < columns_q[(c+Fill+1)*ColumnBits+:ColumnBits])",
          "(columns_q[(c+Fill+1)*ColumnBits+:ColumnBits] != '0)",
          "columns beyond a tile's write their accumulators, too"),
    Fault("rows_below_the_tile", TILES, "tiles", "mmu_weight_fifo_banks",
          "weight[ElementBits] && enabled_q", "weight[ElementBits]",
          "rows beyond a tile's multiply by what lies in the FIFO"),
    Fault("a_row_below_the_input", ADDRESSES, "taps", "mmu_lane",
          "(y < {1'b0, in_height_i})", "(y <= {1'b0, in_height_i})", "the row below the input is read, not zero"),
    Fault("row_a_column_short", ADDRESSES, "positions", "mmu_stream",
          "(columns_left_q > 16'd1)", "(columns_left_q > 16'd2)", "a stream turns to the next row a column early"),
    Fault("tokens_stay", CONTROL, "order", "mmu_tokens",
          "8'(take)", "8'd0", "a token that was taken is still there"),
    Fault("hazard_a_cycle_early", CONTROL, "order", "mmu_in_flight",
          "TimeBits'(Chain + 2)", "TimeBits'(Chain + 1)",
          "a chain goes on a cycle before the sum that it needs is written"),
    Fault("bias_is_the_multiplier", TILES, "output", "mmu_output",
          "registers_file_i == 2'd0", "1'b1", "whatever file of registers is loaded, the biases are written, too"),
    Fault("queue_a_word_short", CONTROL, "order", "mmu_queue",
          "count_q == CountBits'(Depth)", "count_q == CountBits'(Depth - 1)", "a queue is full with 15 instructions"),
]
HIDDEN = [
    Fault("lost_bits_forgotten", ARITHMETIC, "sums", "mmu_arithmetic_pkg",
          "((little & ~(32'hFFFF_FFFF << amount)) != 32'd0)", "1'b0",
          "bits that are shifted out do not count when a sum is rounded"),
    Fault("narrow_ties_down", ARITHMETIC, "output", "mmu_arithmetic_pkg",
          "((x[15:0] == 16'h8000) && x[16])", "1'b0", "a tie on the way to bf16 goes down"),
    Fault("infinity_times_zero", ARITHMETIC, "sums", "mmu_arithmetic_pkg",
          "((infinite != 32'd0) && (product == 32'd0))", "1'b0", "infinity times zero is infinity"),
    Fault("smallest_normal_flushed", ARITHMETIC, "sums", "mmu_arithmetic_pkg",
          "(exponent + ((sum >= 32'hFFFF_FF80) ? 32'd1 : 32'd0) > EXPONENT_OFFSET)",
          "(exponent + ((sum >= 32'hFFFF_FF80) ? 32'd1 : 32'd0) > EXPONENT_OFFSET + 32'd1)",
          "the smallest normal numbers become zero"),
    Fault("product_a_bit_low", ARITHMETIC, "output", "mmu_arithmetic_pkg",
          "32'(!product[47])", "32'd0", "a scale whose significands' product is below 2 gives twice as much"),
    Fault("a_column_right_of_the_input", ADDRESSES, "taps", "mmu_lane",
          "(x < {1'b0, in_width_i})", "(x <= {1'b0, in_width_i})", "the column right of the input is read, not zero"),
    Fault("rows_above_wrap", ADDRESSES, "taps", "mmu_lane",
          "{y_o[15], y_o}", "{1'b0, y_o}", "a position above the input is taken for one far below"),
    Fault("kernel_a_tap_too_wide", ADDRESSES, "taps", "mmu_lane",
          "before_kernel_x_i + 16'd1 < kernel_width_i", "before_kernel_x_i < kernel_width_i",
          "a kernel row has a tap too many"),
    Fault("next_image_is_a_row", ADDRESSES, "positions", "mmu_stream",
          "address_q + wrap_n_q", "address_q + wrap_y_q", "a stream goes to the next image as to the next row"),
    Fault("group_not_repeated", ADDRESSES, "taps", "mmu_fill",
          "r[LaneBits-1:0] & lane_mask", "r[LaneBits-1:0]",
          "a group smaller than the lanes fills the first of them alone"),
    Fault("tile_a_column_too_narrow", TILES, "tiles", "mmu_weight_fifo_banks",
          "16'(c) < write_columns_i", "16'(c) + 16'd1 < write_columns_i", "the last column of a tile is switched off"),
    Fault("tile_a_row_too_high", TILES, "tiles", "mmu_loader",
          "tile_rows_i - 16'd1", "tile_rows_i", "a tile has a row too many"),
    Fault("images_wrap_as_rows", TILES, "positions", "mmu_walk",
          "((rows_left_q > 16'd1) ? wrap_y_i : wrap_n_i)", "wrap_y_i",
          "a store goes to the next image as to the next row"),
    Fault("pool_forgets_nan", TILES, "output", "mmu_output",
          "!mmu_arithmetic_pkg::greater(value, pool_q[c], PeKind == 0)",
          "mmu_arithmetic_pkg::greater(pool_q[c], value, PeKind == 0)", "a pool that begins with NaN forgets it"),
    Fault("mask_beyond_the_columns", TILES, "output", "mmu_output",
          "(c < 32'(columns_i))", "1'b1", "a mask has bits of columns that are not stored"),
    Fault("all_registers_written", TILES, "output", "mmu_output",
          "16'(c) < columns_i", "1'b1", "registers beyond the columns that are loaded are written, too"),
    Fault("halt_does_not_wait", CONTROL, "order", "mmu_dispatch",
          "(!halt || idle_i)", "1'b1", "the program ends before the units have"),
    Fault("seven_in_flight", CONTROL, "order", "mmu_in_flight",
          "count_q == 4'(Entries)", "count_q == 4'd7", "an eighth matmul waits for room"),
    Fault("load_token_a_cycle_early", CONTROL, "order", "mmu_in_flight",
          "TimeBits'(Rows - 1)", "TimeBits'(Rows - 2)", "the load unit gets its token a cycle early"),
    Fault("taps_set_in_flight", CONTROL, "order", "mmu_compute",
          "(opcode == mmu_pkg::OP_SET_TAPS) && (missing_i == '0) && empty",
          "(opcode == mmu_pkg::OP_SET_TAPS) && (missing_i == '0)", "set_taps does not wait for matmuls in flight"),
]
FAULTS = SHOWN + HIDDEN  # number i in the RTL is FAULTS[i - 1]. 0: none

# Before the first module that Verilator reads. A plusarg of the simulation, +fault=NUMBER, selects the fault.
FIRST_MODULE = "mmu_arithmetic_pkg"
SELECTION = """package lab_faults;
  function automatic int from_plusargs();
    int number;
    number = 0;
    if ($value$plusargs("fault=%d", number) == 0) number = 0;
    from_plusargs = number;
  endfunction
  int selected = from_plusargs();
endpackage

"""


def modules_with_faults():
    return list(dict.fromkeys(fault.module for fault in FAULTS))


def seed_faults(modules):
    """The modules, by name, with all faults in them. Raises ValueError when an expression is not there exactly once."""
    seeded = dict(modules)
    for number, fault in enumerate(FAULTS, 1):
        text = seeded[fault.module]
        if text.count(fault.right) != 1:
            raise ValueError(f"seeded fault {fault.name}: '{fault.right}' should be once in {fault.module}")
        choice = f"((lab_faults::selected == {number}) ? ({fault.wrong}) : ({fault.right}))"
        seeded[fault.module] = text.replace(fault.right, choice)
    seeded[FIRST_MODULE] = SELECTION + seeded[FIRST_MODULE]
    return seeded


def number_of(fault):
    return FAULTS.index(fault) + 1


def hidden_faults(hidden):
    """Some of each place."""
    drawn = []
    for place in PLACES:
        left = [fault for fault in HIDDEN if fault.place == place]
        drawn += [left.pop(hidden.below(len(left))) for _ in range(HIDDEN_OF_A_PLACE)]
    return drawn


class FaultyMachine:
    """The machine with all faults in its RTL. A run selects one of them."""

    def __init__(self, bench):
        self.bench = bench
        if not self.built():
            self.build()

    def built(self):
        try:
            return bool(self.bench.text(MACHINE))
        except Refused:
            return False

    def build(self):
        names = modules_with_faults()
        self.succeed("machine", "rtl", "--out", "faulty", *names)
        for name, text in seed_faults({name: self.bench.text(f"faulty/{name}.sv") for name in names}).items():
            self.bench.put(f"faulty/{name}.sv", text)
        self.bench.put(MACHINE, self.bench.lab_text(HANDOUT + MACHINE))
        with self.bench.kept_runtime():
            self.succeed("machine", "build", MACHINE, "--rtl", "faulty", "--quick", **BUILD)

    def succeed(self, *command, **limits):
        ending = self.bench.run("triptych", *command, **limits)
        if not ending.good:
            raise CannotGrade(f"triptych {command[0]} {command[1]}: {ending.why()}")

    def run(self, tests, faults):
        """Outcomes of all tests, which are files of the bench, with each fault: objects with `program`, `passed`,
        `cycles`, `said`, and the number of the `fault`."""
        if not tests or not faults:
            return []
        variants = [word for fault in faults for word in ("--variant", f"fault={fault}")]
        ending = self.bench.run("triptych", "mmu", "test", *tests, "--machine", f"{MACHINE}+faulty", "--simulate", "rtl",
                                "--max-cycles", LONGEST, "--json", *variants, **BUILD)
        if ending.status not in (0, 1):
            raise Refused(f"the tests: {ending.why()}")
        return [{**each, "fault": int(each["variant"].partition("=")[2])} for each in ending.results()]


def tests_of(submission, bench):
    """Files tests/*.s of the submission, put on the bench under the same names."""
    names = [f"tests/{name}" for name in submission.names("tests") if name.endswith(".s")]
    if not names:
        raise Refused("there is no test yet: the first could be example.s, copied into the folder tests")
    if len(names) > MOST_TESTS:
        raise Refused(f"there are {len(names)} tests, {MOST_TESTS} are allowed")
    for name in names:
        text = submission.text(name)
        size = len(text.encode())
        if size > MOST_BYTES:
            raise Refused(f"{name} has {size} bytes, {MOST_BYTES} are allowed")
        bench.put(name, text)
    return names


class Findings:
    """Results of all tests: `alarms` without a fault, faults `found` by a sound test, and the `cycles` without a
    fault."""

    def __init__(self, submission, bench, hidden):
        names = tests_of(submission, bench)
        self.tests = len(names)
        machine = FaultyMachine(bench)
        outcomes = machine.run(names, [0])
        self.cycles = sum(each["cycles"] or 0 for each in outcomes)
        self.alarms = [each for each in outcomes if not each["passed"]]
        sound = [each["program"] for each in outcomes if each["passed"]]
        tried = machine.run(sound, [number_of(fault) for fault in SHOWN + hidden])
        self.found = {FAULTS[each["fault"] - 1] for each in tried if not each["passed"]}
        self.shown_found = sum(fault in self.found for fault in SHOWN)

    def false_alarms(self):
        if self.alarms:
            first = self.alarms[0]
            return (f"a false alarm of {first['program']}: {first['said'] or ''}; {len(self.alarms)} of {self.tests} "
                    "tests fail on the RTL without a fault, and what they find elsewhere does not count")
        if self.shown_found < FOUND_AT_LEAST:
            return (f"no test gives a false alarm, but they find {self.shown_found} of the faults shown, and silence is "
                    f"worth points from {FOUND_AT_LEAST} on")
        return ""

    def economy(self):
        if self.cycles > MOST_CYCLES:
            return f"all tests take {self.cycles} cycles together, {MOST_CYCLES} are allowed"
        return f"counts when {FOUND_AT_LEAST} of the faults shown are found" if self.shown_found < FOUND_AT_LEAST else ""

    def alive(self, fault):
        """Empty if a test finds the fault."""
        if fault in self.found:
            return ""
        sound = self.tests - len(self.alarms)
        tests = "your test passes" if sound == 1 else f"all of your {sound} tests pass"
        if fault in SHOWN:
            return f"alive: {fault.words} ({tests} with `{fault.wrong}` in {fault.module})"
        return (f"alive: a fault of {fault.place}, with which {tests}; it breaks the promise \"{fault.promise}\" of the "
                "handout's table")


def grade(submission, bench, report, hidden):
    drawn = hidden_faults(hidden)
    findings, broken = None, ""
    try:
        findings = Findings(submission, bench, drawn)
    except Refused as refused:
        broken = str(refused)
    items = [("no_false_alarm", 8, lambda: findings.false_alarms()), ("economy", 4, lambda: findings.economy())]
    items += [(fault.name, 2, lambda fault=fault: findings.alive(fault)) for fault in SHOWN]
    items += [(f"hidden_{i}", 3, lambda fault=fault: findings.alive(fault)) for i, fault in enumerate(drawn, 1)]
    for name, points, problem in items:
        report.exact(name, points, broken or problem())
        broken = broken and "nothing ran: see above"
    if findings and len(findings.found) == len(SHOWN) + len(drawn):
        report.standing("cycles of all tests", findings.cycles)


def predictions(bench):
    rows, columns, exact_bits, positions = 4, 4, 24, 16
    start = max(2 * rows + 7, positions + 3)  # docs/reference/mmu.md
    bench.put(EXAMPLE, bench.lab_text(HANDOUT + EXAMPLE))
    outcomes = FaultyMachine(bench).run([EXAMPLE], [number_of(fault) for fault in SHOWN])
    return [("cycles_16", 5, start + 2 * positions + rows + columns + 5, 0),
            ("example_finds", 5, sum(not each["passed"] for each in outcomes), 0),
            ("exact_bits", 5, exact_bits, 0),
            ("hazard_positions", 5, rows + 1, 0)]
