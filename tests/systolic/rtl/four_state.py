#!/usr/bin/env python3
"""Simulates the netlist of the MMU in Icarus with four states and with random initial values.

  four_state.py RTL_FOLDER PROGRAM [--seeds 4] [--faults]

Yosys makes a netlist of `mmu_top`. Icarus runs programs on it: first with every register unknown (X)
before the reset, then with random values in all of them. Each run must end in the cycle in which
the twin ends, leave the twin's bytes in DRAM, none of them X, and have the twin's counters. PROGRAM
is `triptych`. --faults removes a reset from the RTL, one after the other, and expects a failure.
Exit status 77: Yosys or Icarus is not installed.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROWS = 4
DRAM_BYTES = 256
MACHINE = {"rows": ROWS, "columns": ROWS, "buffer_rows": 16, "accumulator_rows": 16,
           "weight_tiles": 2, "queue_depth": 4, "clock_mhz": 100, "dram": "ideal", "dram_bytes": 4096}
INT8, STAGES, VECTOR = KINDS = [{"pe": "int8", "pe_latency": 1}, {"pe": "bf16", "pe_latency": 3},
                               {"pe": "bf16", "pe_latency": 1, "vector_rows": 16}]

# A forward product whose result stays in the buffer for a second one; then a transposed stream.
FORWARD = """
.input  x address=0  type={type} shape=4x4
.input  w address=32 type={type} shape=4x4
.input  v address=64 type={type} shape=4x4
.output z address=128 type={sum} shape=4x4
load        signal=compute address=x pitch={row} buffer_pitch=1 units=1 lines=4 log2_group=2
set_stream  in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
weight_load address=w pitch={row} rows=4 columns=4
weight_load address=v pitch={row} rows=4 columns=4
matmul      wait=load signal=store count=4 rows_left=1 columns_left=4
set_output  out_height=1 out_width=4 step_x=1
store       wait=compute signal=compute buffer=1 narrow=1 log2_group=2 address=4 count=4 columns=4 rows_left=1 columns_left=4
matmul      wait=store signal=store address=4 accumulator=4 count=4 rows_left=1 columns_left=4
set_output  out_height=1 out_width=4 step_x=16
store       wait=compute address=z accumulator=4 count=4 columns=4 rows_left=1 columns_left=4
halt
"""
TRANSPOSED = """
.input  x address=0  type={type} shape=4x4
.input  w address=32 type={type} shape=4x4
.output z address=128 type={sum} shape=4x4
load        signal=compute address=x pitch={row} buffer_pitch=1 units=1 lines=4 log2_group=2
set_stream  in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
weight_load address=w pitch={row} rows=4 columns=4
matmul      transpose=1 wait=load signal=store count=4 rows_left=1 columns_left=4
set_output  out_height=1 out_width=4 step_x=16
store       wait=compute address=z count=4 columns=4 rows_left=1 columns_left=4
halt
"""

# Sums of a product through the vector unit: with three operands, a constant, across lanes.
LANES = """
.input  x address=0  type=bf16 shape=4x4
.input  w address=32 type=bf16 shape=4x4
.input  v address=64 type=f32  shape=4x4
.output z address=128 type=f32 shape=4x4
load         signal=compute address=x pitch=8 buffer_pitch=1 units=1 lines=4 log2_group=2
set_stream   in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1
set_taps     channels=4 kernel_width=1 log2_group=2
weight_load  address=w pitch=8 rows=4 columns=4
matmul       wait=load signal=store count=4 rows_left=1 columns_left=4
vector_load  wait=compute address=v pitch=16 count=4 columns=4
vector_op    operation=multiply accumulators=1 a_step=1 b_step=1 destination=4 step=1 count=4
vector_op    operation=fma a=4 a_step=1 b_step=1 c=4 c_step=1 destination=8 step=1 count=4
vector_op    operation=larger constant=1 scalar=1065353216 a=8 a_step=1 destination=8 step=1 count=4
vector_op    operation=rotate scalar=3 a=8 a_step=1 destination=12 step=1 count=4
vector_store address=z pitch=16 row=12 count=4 columns=4
halt
"""
PROGRAMS = {"forward": FORWARD, "transposed": TRANSPOSED}

# Resets without which outputs stay unknown: (what, machine, file, text, its replacement).
FAULTS = [
    ("the cycle count", INT8, "mmu_top.sv", "now_q <= clear ? '0 : now_q + 1'b1;",
     "now_q <= now_q + 1'b1;"),
    ("the loader's wait", INT8, "mmu_loader.sv", "wait_q <= '0;", ""),
    ("the transposer", INT8, "mmu_transposer.sv", "transpose_q <= '0;", ""),
    ("the matmul that streams", INT8, "mmu_compute.sv", "slots_left_q <= '0;", ""),
    ("the row of a vector store", VECTOR, "mmu_vector.sv",
     "c_asked_q <= 1'b0;\n      presents_q <= 1'b0;", "c_asked_q <= 1'b0;"),
]

# Data come in the cycle after their request, as ideal memory gives them. A byte that nobody wrote
# is X.
BENCH = """
`timescale 1ns/1ns
module bench;
  reg clk = 0, rst_n = 0, start = 0;
  reg [255:0] words[0:{last}];
  reg [7:0] dram[0:{bytes}];
  integer next = 0, cycle = 0, i;
  reg [4:0] counter = 0;
  wire [63:0] count;
  wire [2:0] status;
  wire instruction_ready;
  wire load_request, weights_request, store_request, operand_request;
  wire [31:0] load_address, weights_address, store_address, operand_address;
  wire [15:0] load_bytes, weights_bytes, store_bytes, operand_bytes;
  reg load_valid = 0, weights_valid = 0, operand_valid = 0;
  reg [{element_bits}-1:0] load_data, weights_data;
  reg [{sum_bits}-1:0] operand_data;
  wire [{sum_bits}-1:0] store_data;
  reg running = 0;
  always #5 clk = ~clk;
  mmu_top dut(
    .clk_i(clk), .rst_ni(rst_n), .start_i(start), .weight_scheme_i(2'd0), .status_o(status),
    .instruction_valid_i(running && next <= {last}), .instruction_i(words[next]),
    .instruction_ready_o(instruction_ready),
    .load_request_o(load_request), .load_address_o(load_address), .load_bytes_o(load_bytes),
    .load_ready_i(1'b1), .load_valid_i(load_valid), .load_data_i(load_data),
    .weights_request_o(weights_request), .weights_address_o(weights_address),
    .weights_bytes_o(weights_bytes), .weights_ready_i(1'b1), .weights_valid_i(weights_valid),
    .weights_data_i(weights_data),
    .store_request_o(store_request), .store_address_o(store_address), .store_bytes_o(store_bytes),
    .store_data_o(store_data), .store_ready_i(1'b1),
    .operand_request_o(operand_request), .operand_address_o(operand_address),
    .operand_bytes_o(operand_bytes), .operand_ready_i(1'b1), .operand_valid_i(operand_valid),
    .operand_data_i(operand_data), .counter_i(counter), .counter_o(count));
  initial begin
    $readmemh("program.hex", words);
    $readmemh("dram.hex", dram);
    {initial}
    repeat (3) @(negedge clk);
    rst_n = 1;
    start = 1;
    @(negedge clk);
    start = 0;
    running = 1;
    while (status === 3'd0 && cycle < 200) begin
      cycle = cycle + 1;
      @(negedge clk);
    end
    $display("status %b cycle %0d", status, cycle - 1);  // the last one only halts
    for (i = 128; i < 192; i = i + 1) $display("byte %b", dram[i]);
    for (i = 0; i < 31; i = i + 1) begin
      counter = i;
      @(negedge clk);
      $display("count %0d", count);
    end
    $finish;
  end
  always @(posedge clk) if (running) begin
    if (instruction_ready === 1'b1 && next <= {last}) next <= next + 1;
    load_valid <= load_request;
    weights_valid <= weights_request;
    operand_valid <= operand_request;
    if (load_request === 1'b1)
      for (i = 0; i < {element_bits} / 8; i = i + 1)
        load_data[8*i+:8] <= i < load_bytes ? dram[load_address + i] : 8'd0;
    if (weights_request === 1'b1)
      for (i = 0; i < {element_bits} / 8; i = i + 1)
        weights_data[8*i+:8] <= i < weights_bytes ? dram[weights_address + i] : 8'd0;
    if (operand_request === 1'b1)
      for (i = 0; i < {sum_bits} / 8; i = i + 1)
        operand_data[8*i+:8] <= i < operand_bytes ? dram[operand_address + i] : 8'd0;
    if (store_request === 1'b1)
      for (i = 0; i < store_bytes; i = i + 1) dram[store_address + i] <= store_data[8*i+:8];
  end
endmodule
"""


def write_npy(path, kind, values):
    """A 4 x 4 array; `kind`: "<f4" or "|i1"."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (4, 4), }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    data = struct.pack("<16f" if kind == "<f4" else "16b", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def run(command, **options):
    result = subprocess.run([str(word) for word in command], check=False, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if result.returncode != 0:
        sys.exit(f"four_state.py: {command[0]} failed:\n{result.stdout[-2000:]}")
    return result.stdout


def netlist(rtl, kind, folder):
    """The machine as registers, memories and the logic between them."""
    files = sorted(rtl.glob("mmu_*.sv"),
                   key=lambda f: (f.name != "mmu_pkg.sv", not f.name.endswith("_pkg.sv"), f.name))
    values = {"Rows": ROWS, "Columns": ROWS, "PeKind": int(kind["pe"] == "int8"),
              "PeLatency": kind["pe_latency"], "BufferRows": MACHINE["buffer_rows"],
              "AccumulatorRows": MACHINE["accumulator_rows"], "ArrayKind": 1,
              "WeightTiles": MACHINE["weight_tiles"], "QueueDepth": MACHINE["queue_depth"],
              "VectorRows": kind.get("vector_rows", 0)}
    sets = " ".join(f"-set {name} {value}" for name, value in values.items())
    run(["yosys", "-q", "-p",
         f"read_verilog -sv {' '.join(map(str, files))}; chparam {sets} mmu_top; "
         "hierarchy -top mmu_top; proc; flatten; chformal -remove; opt_clean; memory -nomap; "
         "opt_clean -purge; rename -top mmu_top; write_verilog -noattr netlist.v"], cwd=folder)
    return (folder / "netlist.v").read_text()


def registers(text):
    """Names and widths of the netlist's registers."""
    for high, low, name in re.findall(r"^\s*reg\s+(?:\[(\d+):(\d+)\]\s+)?(\S+)\s*(?:=.*)?;", text,
                                      re.MULTILINE):
        yield name, int(high) - int(low) + 1 if high else 1


def case(program, kind, text, folder):
    """The inputs as files. The number of instructions, the twin's cycles, bytes and counters."""
    is_int8 = kind["pe"] == "int8"
    names = {"type": "int8" if is_int8 else "bf16", "sum": "int32" if is_int8 else "f32",
             "row": 4 if is_int8 else 8}
    text = text.format(**names)
    (folder / "program.s").write_text(text)
    (folder / "machine.json").write_text(json.dumps(MACHINE | kind | {"name": "four"}))
    draw = random.Random(3)
    command = [program, "mmu", "run", "program.s", "--machine", "machine.json", "--out", "z.npy", "--json"]
    dram = ["xx"] * DRAM_BYTES
    for name, address, type_name in re.findall(r"\.input +(\w+) +address=(\d+) +type=(\w+)", text):
        address = int(address)
        values = [draw.randint(-3, 3) for _ in range(16)]
        write_npy(folder / f"{name}.npy", "|i1" if type_name == "int8" else "<f4", values)
        raw = struct.pack("16b", *values) if type_name == "int8" else b"".join(
            struct.pack("<f", value)[2 if type_name == "bf16" else 0:] for value in values)
        dram[address:address + len(raw)] = [f"{byte:02x}" for byte in raw]
        command += ["--dram", f"{name}={name}.npy"]
    (folder / "dram.hex").write_text("\n".join(dram))
    report = json.loads(run(command, cwd=folder))
    words = run([program, "mmu", "asm", "program.s"], cwd=folder)
    (folder / "program.hex").write_text(words)
    counters = report["results"][0]["counters"]
    counts = [value for name, value in counters.items()  # in the order of mmu_counters
              if name not in ("dram_bursts", "dram_row_misses")]
    return len(words.splitlines()), counters["cycles"], (folder / "z.npy").read_bytes()[-64:], counts


def simulate(kind, count, initial, folder):
    bits = 8 if kind["pe"] == "int8" else 16
    values = {"last": count - 1, "bytes": DRAM_BYTES - 1, "element_bits": ROWS * bits,
              "sum_bits": ROWS * 32, "initial": initial}
    text = BENCH
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    (folder / "bench.v").write_text(text)
    run(["iverilog", "-g2012", "-o", "bench", "bench.v", "netlist.v"], cwd=folder)
    out = run(["vvp", "-n", "bench"], cwd=folder)
    status, cycle = re.search(r"status (\S+) cycle (\d+)", out).groups()
    return status, int(cycle), re.findall(r"byte (\S+)", out), re.findall(r"count (\S+)", out)


def problems(rtl, program, kind, seeds, folder):
    """Runs that differ from the twin, one line each."""
    gates = netlist(rtl, kind, folder)
    found = []
    programs = PROGRAMS | ({"lanes": LANES} if kind is VECTOR else {})
    for name, text in programs.items():
        count, cycles, expected, counts = case(program, kind, text, folder)
        wanted = ("001", cycles, [f"{byte:08b}" for byte in expected], [str(n) for n in counts])
        for seed in range(seeds + 1):
            draw = random.Random(seed)
            initial = "" if seed == 0 else "\n".join(
                f"dut.{register} = {width}'h{draw.getrandbits(width):x};"
                for register, width in registers(gates))
            got = simulate(kind, count, initial, folder)
            start = f"random values {seed}" if seed else "X"
            if got != wanted:
                unknown = sum("x" in byte for byte in got[2])
                wrong = [i for i, (a, b) in enumerate(zip(got[3], wanted[3])) if a != b]
                found.append(f"{name}, registers from {start}: status {got[0]} in cycle {got[1]} "
                             f"({cycles} by the twin), {unknown} unknown bytes, counters {wrong}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rtl", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--faults", action="store_true")
    arguments = parser.parse_args()
    for tool in ("yosys", "iverilog"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed (apt-get install {tool})")
            sys.exit(77)
    failed = False
    program = arguments.program.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for what, kind, *fault in FAULTS if arguments.faults else [("", kind) for kind in KINDS]:
            rtl = arguments.rtl.resolve()
            if fault:
                file, text, replacement = fault
                rtl = shutil.copytree(rtl, folder / "faulty", dirs_exist_ok=True)
                good = (rtl / file).read_text()
                assert text in good, f"{file} has no {text}"
                (rtl / file).write_text(good.replace(text, replacement))
            found = problems(rtl, program, kind, arguments.seeds, folder)
            failed = failed or bool(found) != arguments.faults
            name = what or ", ".join(f"{key} {value}" for key, value in kind.items())
            print(f"{name}: " + ("; ".join(found) or "as the twin"), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
