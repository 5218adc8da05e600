// Dispatch: moves an instruction per cycle, in program order, into its unit's queue, executes Halt,
// and holds the machine's status.
// SPDX-License-Identifier: Apache-2.0
module mmu_dispatch #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned AccumulatorRows = 64,
    parameter int unsigned OutputStationary = 0,
    parameter int unsigned VectorRows = 0
) (
    input logic clk_i,
    input logic rst_ni,
    input logic start_i,  // the next cycle is cycle 0 of a program
    // The program, from whoever fetches it.
    input logic instruction_valid_i,
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] instruction_i,
    output logic instruction_ready_o,
    // The queues, by unit.
    input logic [3:0] full_i,
    output logic [3:0] push_o,
    // Ends of a program.
    input logic idle_i,      // all queues are empty, all units idle
    input logic overflow_i,  // a token counter
    input logic moved_i,     // some unit did something in this cycle
    output logic running_o,
    output logic [2:0] status_o  // 0 runs, 1 halted, 2 illegal, 3 token, 4 timeout
);
  mmu_pkg::instruction_t instruction;
  assign instruction = instruction_i;
  localparam logic [2:0] RUNS = 3'd0, HALTED = 3'd1, ILLEGAL = 3'd2, TOKEN = 3'd3, TIMEOUT = 3'd4;

  logic [2:0] status_q;
  logic [16:0] quiet_q;
  logic illegal;
  logic halt;
  logic [3:0] unit;

  mmu_check #(
      .Rows(Rows),
      .Columns(Columns),
      .AccumulatorRows(AccumulatorRows),
      .OutputStationary(OutputStationary),
      .VectorRows(VectorRows)
  ) u_check (
      .word_i(instruction_i),
      .illegal_o(illegal)
  );

  always_comb begin
    unique case (instruction.opcode)
      mmu_pkg::OP_LOAD: unit = 4'b0001;
      mmu_pkg::OP_WEIGHT_LOAD: unit = 4'b0010;
      mmu_pkg::OP_SET_STREAM, mmu_pkg::OP_SET_TAPS, mmu_pkg::OP_MATMUL: unit = 4'b0100;
      mmu_pkg::OP_SET_OUTPUT, mmu_pkg::OP_SET_OPERAND, mmu_pkg::OP_LOAD_REGISTERS,
      mmu_pkg::OP_STORE, mmu_pkg::OP_VECTOR_LOAD, mmu_pkg::OP_VECTOR_STORE,
      mmu_pkg::OP_VECTOR_OP: unit = 4'b1000;
      default: unit = 4'b0000;
    endcase
  end

  assign halt = instruction.opcode == mmu_pkg::OP_HALT;
  assign instruction_ready_o = (status_q == RUNS) && ((unit & full_i) == '0) && (!halt || idle_i);
  assign push_o = (instruction_valid_i && instruction_ready_o && !illegal) ? unit : 4'b0000;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      status_q <= HALTED;
      quiet_q <= '0;
    end else if (start_i) begin
      status_q <= RUNS;
      quiet_q <= '0;
    end else if (status_q == RUNS) begin
      one_queue_is_filled : assert ((push_o & (push_o - 4'd1)) == '0);
      full_queues_are_not_filled : assert ((push_o & full_i) == '0);
      dispatch_waits_for_room : cover (instruction_valid_i && ((unit & full_i) != '0));
      halt_waits_for_the_units : cover (instruction_valid_i && halt && !idle_i);
      quiet_q <= moved_i ? '0 : quiet_q + 17'd1;
      if (quiet_q[16]) status_q <= TIMEOUT;
      if (overflow_i) status_q <= TOKEN;
      if (instruction_valid_i && instruction_ready_o) begin
        if (illegal) status_q <= ILLEGAL;
        else if (halt) status_q <= HALTED;
      end
    end
  end

  assign running_o = status_q == RUNS;
  assign status_o = status_q;
endmodule
