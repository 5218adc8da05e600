// The performance counters, 64 bits each, read by number, shown in the next cycle. A register
// separates products from sums, so a read contains events up to two cycles before it. 0 cycles,
// 1 issue, 2 padding, 3 to 9 the stalls (drain, activations, output, dram, weights, accumulator,
// in-flight), 10 MACs, 11 and 12 buffer reads and writes, 13 and 14 accumulator reads and writes,
// 15 weight reads, 16 to 19 DRAM bytes and 20 to 23 instructions by unit. With a vector unit, which
// has the others, 24 its cycles, 25 and 26 reads and writes of its memory, 27 to 30 adds,
// multiplies, FMAs and other operations. Numbers without a counter read 0.
// SPDX-License-Identifier: Apache-2.0
module mmu_counters #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned VectorRows = 0  // of the vector unit. 0: none
) (
    input logic clk_i,
    input logic start_i,  // clears them
    input logic running_i,
    input logic halt_i,  // this cycle is the Halt's
    input logic issue_i,
    input logic padding_i,
    input logic [6:0] stall_i,
    // A slot that left in the last cycle, the PEs that multiply in it, and the sums that it or a
    // drain writes.
    input logic slot_used_i,
    input logic slot_accumulate_i,
    input logic [15:0] slot_rows_i,
    input logic [15:0] slot_columns_i,
    input logic slot_write_i,
    input logic [$clog2(Columns+1)-1:0] slot_write_columns_i,
    input logic buffer_write_i,
    input logic store_grant_i,  // of a position
    input logic [15:0] store_columns_i,
    input logic store_pool_i,  // of four rows
    input mmu_vector_pkg::actions_t vector_i,
    input logic tile_i,  // the loader starts to move a tile
    input logic [63:0] dram_bytes_i,  // granted in this cycle, 16 bits for each unit
    input logic [3:0] push_i,
    input logic [4:0] index_i,
    output logic [63:0] value_o
);
  localparam int unsigned VECTOR = 24;  // the first counter of the vector unit
  localparam int unsigned Counters = (VectorRows != 0) ? VECTOR + 7 : VECTOR;
  logic [63:0] count_q[Counters];
  logic [31:0] step[Counters];  // of this cycle
  logic [31:0] step_q[Counters];  // of the last cycle, if counts_q
  logic counts_q;
  logic [63:0] value_q;

  logic [31:0] vector_step[7];
  assign vector_step[0] = 32'(vector_i.runs);
  assign vector_step[1] = 32'(vector_i.reads) * 32'(Columns);
  assign vector_step[2] = vector_i.write ? 32'(Columns) : 32'd0;
  assign vector_step[3] = vector_i.add ? 32'(Columns) : 32'd0;
  assign vector_step[4] = vector_i.multiply ? 32'(Columns) : 32'd0;
  assign vector_step[5] = vector_i.fma ? 32'(Columns) : 32'd0;
  assign vector_step[6] = vector_i.other ? 32'(Columns) : 32'd0;

  always_comb begin : steps
    // verilator tracing_off
    int unsigned i;
    // verilator tracing_on
    i = 0;
    step[0] = 32'd1;
    step[1] = 32'(issue_i);
    step[2] = 32'(padding_i);
    for (i = 0; i < 7; i++) step[i+3] = 32'(stall_i[i[2:0]]);
    step[10] = slot_used_i ? 32'(slot_rows_i) * 32'(slot_columns_i) : 32'd0;
    step[11] = slot_used_i ? 32'(slot_rows_i) : 32'd0;
    step[12] = buffer_write_i ? 32'(Rows) : 32'd0;
    step[13] = ((slot_used_i && slot_accumulate_i) ? 32'(slot_columns_i) : 32'd0) +
               (store_grant_i ? 32'(store_columns_i) << (store_pool_i ? 2 : 0) : 32'd0) +
               (vector_i.sums ? 32'(Columns) : 32'd0);
    step[14] = slot_write_i ? 32'(slot_write_columns_i) : 32'd0;
    step[15] = tile_i ? 32'(Rows * Columns) : 32'd0;
    for (i = 0; i < 4; i++) begin
      step[i+16] = 32'(dram_bytes_i[16*i+:16]);
      step[i+20] = 32'(push_i[i[1:0]]);
    end
    for (i = VECTOR; i < Counters; i++) step[i] = vector_step[i-VECTOR];
  end

  // verilator lint_off BLKSEQ
  // In-place updates of an array in a loop, which the simulator would otherwise copy.
  always_ff @(posedge clk_i) begin : counting
    // verilator tracing_off
    int unsigned i;
    // verilator tracing_on
    i = 0;
    value_q <= (32'(index_i) < Counters) ? count_q[index_i] : '0;
    if (start_i) begin
      for (i = 0; i < Counters; i++) count_q[i] = 64'd0;
    end else if (counts_q) begin
      for (i = 0; i < Counters; i++) count_q[i] = count_q[i] + 64'(step_q[i]);
    end
    counts_q <= running_i && !halt_i && !start_i;
    for (i = 0; i < Counters; i++) step_q[i] = step[i];
  end
  // verilator lint_on BLKSEQ

  assign value_o = value_q;
endmodule
