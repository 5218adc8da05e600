// The weight FIFO as hardware has it: a memory per column. Same ports and same cycles as
// mmu_weight_fifo, which describes them.
// SPDX-License-Identifier: Apache-2.0
module mmu_weight_fifo_banks #(
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
  localparam int unsigned AskBits = RowBits + 1;
  localparam int unsigned WeightBits = ElementBits + 1;

  // Requests of the columns: {enabled, row}. Column 0's, in the low bits, comes from the port.
  logic [Columns*AskBits-1:0] ask;
  logic [(Columns-1)*AskBits-1:0] ask_q;
  assign ask = {ask_q, read_enabled_i, read_row_i};
  always_ff @(posedge clk_i) if (moving_i) ask_q <= ask[(Columns-1)*AskBits-1:0];

  for (genvar c = 0; c < Columns; c++) begin : gen_bank
    logic [WeightBits-1:0] weight;
    logic enabled_q;
    mmu_sram_1r1w #(
        .Words(Tiles * Rows),
        .Bits(WeightBits)
    ) u_bank (
        .clk_i,
        .write_i,
        .write_row_i,
        .write_data_i({16'(c) < write_columns_i, write_data_i[c*ElementBits+:ElementBits]}),
        .read_i(moving_i),
        .read_row_i(ask[c*AskBits+:RowBits]),
        .read_data_o(weight)
    );
    always_ff @(posedge clk_i) if (moving_i) enabled_q <= ask[c*AskBits+RowBits];
    assign weight_o[c*WeightBits+:WeightBits] = {weight[ElementBits] && enabled_q,
                                                 weight[ElementBits-1:0]};
  end
endmodule
