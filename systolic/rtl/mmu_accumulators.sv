// The accumulators, a bank per column. A slot's row and flags move along one chain: column c asks
// for its feedback in stage c + Lead (or starts from zero) and is written from the bottom of the
// array in stage c + Fill + 1, unless it lies beyond the slot's tile. The output unit reads all
// columns of a row at once. Reads are shown in the next cycle and give old values.
// All banks in one block, which simulates fast. mmu_accumulators_banks is the view to synthesise.
// SPDX-License-Identifier: Apache-2.0
module mmu_accumulators #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned AccumulatorRows = 64,
    parameter int unsigned Lead = 0,    // cycles of a product before its sum arrives
    parameter int unsigned Fill = Rows  // cycles from a column's first product to its sum
) (
    input logic clk_i,
    input logic enable_i,  // some slot is on its way
    // The slot that reaches stage 0 in the next cycle.
    input logic valid_i,
    input logic accumulate_i,
    input logic [$clog2(Columns+1)-1:0] columns_i,
    input logic [$clog2(AccumulatorRows)-1:0] row_i,
    output logic [Columns*32-1:0] psum_o,  // to the top of the array
    input logic [Columns*32-1:0] psum_i,   // from its bottom
    // Output unit.
    input logic read_i,
    input logic [$clog2(AccumulatorRows)-1:0] read_row_i,
    output logic [Columns*32-1:0] data_o
);
  localparam int unsigned RowBits = $clog2(AccumulatorRows);
  localparam int unsigned ColumnBits = $clog2(Columns + 1);
  localparam int unsigned Stages = Fill + Columns + 1;

  (* nomem2reg *)
  logic [31:0] memory_q[Columns][AccumulatorRows] /* verilator public_flat_rd */;
  logic [Columns*32-1:0] feedback_q;
  logic [Columns*32-1:0] data_q;
  logic [RowBits-1:0] row_q[Stages];
  logic [ColumnBits-1:0] columns_q[Stages];  // that write. 0: no slot
  logic [Columns+Lead-1:0] accumulate_q;

  // verilator lint_off BLKSEQ
  // In-place updates, readers first, so that the simulator need not copy the arrays. Values for
  // other blocks use non-blocking assignments.
  always_ff @(posedge clk_i) begin : banks
    // verilator tracing_off
    int unsigned i, c;
    // verilator tracing_on
    i = 0;
    c = 0;
    if (read_i) begin
      for (c = 0; c < Columns; c++) data_q[c*32+:32] <= memory_q[c][read_row_i];
    end
    if (enable_i) begin
      for (c = 0; c < Columns; c++) begin
        feedback_q[c*32+:32] <= accumulate_q[c+Lead] ? memory_q[c][row_q[c+Lead]] : 32'd0;
      end
      for (c = 0; c < Columns; c++) begin
        if (ColumnBits'(c) < columns_q[c+Fill+1]) begin
          memory_q[c][row_q[c+Fill+1]] = psum_i[c*32+:32];
        end
      end
      for (i = 0; i < Stages - 1; i++) row_q[Stages-1-i] = row_q[Stages-2-i];
      for (i = 0; i < Stages - 1; i++) columns_q[Stages-1-i] = columns_q[Stages-2-i];
      row_q[0] = row_i;
      columns_q[0] = valid_i ? columns_i : '0;
      accumulate_q = (accumulate_q << 1) | (Columns + Lead)'(accumulate_i);
    end
  end
  // verilator lint_on BLKSEQ

  assign psum_o = feedback_q;
  assign data_o = data_q;
endmodule
