// The performance counters, 64 bits each, read by number, shown in the next cycle: 0 cycles,
// 1 issue, 2 padding, 3 to 9 the stalls (drain, activations, output, dram, weights, accumulator,
// in-flight), 10 MACs, 11 and 12 buffer reads and writes, 13 and 14 accumulator reads and writes,
// 15 weight reads, 16 to 19 DRAM bytes and 20 to 23 instructions by unit.
// SPDX-License-Identifier: Apache-2.0
module mmu_counters #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4
) (
    input logic clk_i,
    input logic start_i,  // clears them
    input logic running_i,
    input logic halt_i,  // this cycle is the Halt's
    input logic issue_i,
    input logic padding_i,
    input logic [6:0] stall_i,
    // A position that left in the last cycle, and the shape of its tile.
    input logic slot_used_i,
    input logic slot_accumulate_i,
    input logic [15:0] active_rows_i,
    input logic [15:0] active_columns_i,
    input logic buffer_write_i,
    input logic store_grant_i,  // of a position
    input logic [15:0] store_columns_i,
    input logic tile_i,  // the loader starts to move a tile
    input logic dram_grant_i,
    input logic [1:0] dram_unit_i,
    input logic [15:0] dram_bytes_i,
    input logic [3:0] push_i,
    input logic [4:0] index_i,
    output logic [63:0] value_o
);
  localparam int unsigned Counters = 24;
  logic [63:0] count_q[Counters];
  logic [63:0] value_q;

  // verilator lint_off BLKSEQ
  // In-place updates of an array in a loop, which the simulator would otherwise copy.
  always_ff @(posedge clk_i) begin : counting
    int unsigned i;
    i = 0;
    value_q <= count_q[index_i];
    if (start_i) begin
      for (i = 0; i < Counters; i++) count_q[i[4:0]] = 64'd0;
    end else if (running_i && !halt_i) begin
      count_q[0] = count_q[0] + 64'd1;
      if (issue_i) begin
        count_q[1] = count_q[1] + 64'd1;
        if (padding_i) count_q[2] = count_q[2] + 64'd1;
      end else begin
        for (i = 0; i < 7; i++) count_q[5'(i+3)] = count_q[5'(i+3)] + 64'(stall_i[i[2:0]]);
      end
      if (slot_used_i) begin
        count_q[10] = count_q[10] + 64'(32'(active_rows_i) * 32'(active_columns_i));
        count_q[11] = count_q[11] + 64'(active_rows_i);
        if (slot_accumulate_i) count_q[13] = count_q[13] + 64'(active_columns_i);
        count_q[14] = count_q[14] + 64'(active_columns_i);
      end
      if (buffer_write_i) count_q[12] = count_q[12] + 64'(Rows);
      if (store_grant_i) count_q[13] = count_q[13] + 64'(store_columns_i);
      if (tile_i) count_q[15] = count_q[15] + 64'(Rows * Columns);
      if (dram_grant_i) begin
        count_q[{3'b100, dram_unit_i}] = count_q[{3'b100, dram_unit_i}] + 64'(dram_bytes_i);
      end
      if (push_i != '0) begin
        for (i = 0; i < 4; i++) count_q[5'(i+20)] = count_q[5'(i+20)] + 64'(push_i[i[1:0]]);
      end
    end
  end
  // verilator lint_on BLKSEQ

  assign value_o = value_q;
endmodule
