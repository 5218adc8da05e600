// The way of output-stationary sums into the accumulators. A matmul of that kind has Rows slots,
// and the Rows slots after them belong to its sums on their way down the columns: row r's sum is
// slot r of the drain. A weight-stationary matmul waits for the end of these slots. Only a matmul
// that drains uses them: its first sums are written to the accumulators as results of such slots.
// SPDX-License-Identifier: Apache-2.0
module mmu_drain #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned AccumulatorRows = 64
) (
    input logic clk_i,
    input logic clear_i,
    // The output-stationary matmul that starts.
    input logic start_i,
    input logic drain_i,
    input logic [$clog2(Rows+1)-1:0] count_i,  // sums that are written
    input logic [$clog2(AccumulatorRows)-1:0] row_i,
    input logic [$clog2(Columns+1)-1:0] columns_i,
    // Its last slot leaves in this cycle.
    input logic last_i,
    output logic busy_o,  // a slot of a drain leaves in this cycle
    // The slot of a drain that left in the last cycle.
    output logic first_o,
    output logic moves_o,  // with sums
    output logic write_o,
    output logic [$clog2(AccumulatorRows)-1:0] row_o,
    output logic [$clog2(Columns+1)-1:0] columns_o
);
  localparam int unsigned RowBits = $clog2(AccumulatorRows);
  localparam int unsigned ColumnBits = $clog2(Columns + 1);
  localparam int unsigned CountBits = $clog2(Rows + 1);

  logic [CountBits-1:0] count_q, writes_left_q, slots_left_q;
  logic drains_q, moving_q;
  logic [RowBits-1:0] next_row_q, row_q, slot_row_q;
  logic [ColumnBits-1:0] next_columns_q, columns_q, slot_columns_q;
  logic first_q, moves_q, write_q;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      drains_q <= drain_i;
      count_q <= count_i;
      next_row_q <= row_i;
      next_columns_q <= columns_i;
    end
    if (last_i) begin
      moving_q <= drains_q;
      row_q <= next_row_q;
      columns_q <= next_columns_q;
    end else if (busy_o) begin
      row_q <= row_q + 1'b1;
    end
    slot_row_q <= row_q;
    slot_columns_q <= columns_q;
    if (clear_i) begin
      slots_left_q <= '0;
      writes_left_q <= '0;
      first_q <= 1'b0;
      moves_q <= 1'b0;
      write_q <= 1'b0;
    end else begin
      if (last_i) slots_left_q <= CountBits'(Rows);
      else if (busy_o) slots_left_q <= slots_left_q - 1'b1;
      if (last_i) writes_left_q <= drains_q ? count_q : '0;
      else if (writes_left_q != '0) writes_left_q <= writes_left_q - 1'b1;
      first_q <= busy_o && moving_q && (slots_left_q == CountBits'(Rows));
      moves_q <= busy_o && moving_q;
      write_q <= writes_left_q != '0;
      drains_do_not_overlap : assert (!(last_i && (slots_left_q > CountBits'(1))));
    end
  end

  assign busy_o = slots_left_q != '0;
  assign first_o = first_q;
  assign moves_o = moves_q;
  assign write_o = write_q;
  assign row_o = slot_row_q;
  assign columns_o = slot_columns_q;
endmodule
