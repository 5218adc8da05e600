// The weight FIFO: `Tiles` slots of Rows x Columns weights with enable bits, a bank per column. A
// row is written at once. A read requests column 0 in its own cycle and column c in the c-th after
// it. Each weight appears in the cycle after the request of its column. All banks in one block,
// which simulates fast. mmu_weight_fifo_banks is the view to synthesise.
// SPDX-License-Identifier: Apache-2.0
module mmu_weight_fifo #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned Tiles = 4,
    parameter int unsigned ElementBits = 16
) (
    input logic clk_i,
    input logic write_i,
    input logic [$clog2(Tiles*Rows)-1:0] write_row_i,
    input logic [15:0] write_columns_i,  // the others are disabled
    input logic [Columns*ElementBits-1:0] write_data_i,
    input logic moving_i,  // some column reads
    input logic [$clog2(Tiles*Rows)-1:0] read_row_i,
    input logic read_enabled_i,  // the row belongs to the tile
    output logic [Columns*(ElementBits+1)-1:0] weight_o
);
  localparam int unsigned RowBits = $clog2(Tiles * Rows);
  localparam int unsigned WeightBits = ElementBits + 1;

  (* nomem2reg *)
  logic [WeightBits-1:0] memory_q[Columns][Tiles*Rows];
  logic [RowBits:0] ask_q[Columns];  // {enabled, row} for column c. 0 is the port
  logic [Columns*WeightBits-1:0] weight_q;

  // verilator lint_off BLKSEQ
  // In-place updates, readers first, so that the simulator need not copy the arrays. Values for
  // other blocks use non-blocking assignments.
  always_ff @(posedge clk_i) begin : banks
    // verilator tracing_off
    int unsigned i, c;
    logic [WeightBits-1:0] weight;
    // verilator tracing_on
    i = 0;
    c = 0;
    weight = '0;
    if (moving_i) begin
      ask_q[0] = {read_enabled_i, read_row_i};
      for (c = 0; c < Columns; c++) begin
        weight = memory_q[c][ask_q[c][RowBits-1:0]];
        weight[ElementBits] = weight[ElementBits] && ask_q[c][RowBits];
        weight_q[c*WeightBits+:WeightBits] <= weight;
      end
      for (i = 0; i < Columns - 1; i++) ask_q[Columns-1-i] = ask_q[Columns-2-i];
    end
    if (write_i) begin
      for (c = 0; c < Columns; c++) begin
        memory_q[c][write_row_i] = {16'(c) < write_columns_i,
                                    write_data_i[c*ElementBits+:ElementBits]};
      end
    end
  end
  // verilator lint_on BLKSEQ

  assign weight_o = weight_q;
endmodule
