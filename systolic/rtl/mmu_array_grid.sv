// The systolic array as the textbook draws it: a grid of mmu_pe, wired to its neighbours. Same
// ports and same cycles as mmu_array.
// SPDX-License-Identifier: Apache-2.0
module mmu_array_grid #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned PeKind = 0,  // 0: bf16, 1: int8
    parameter int unsigned ElementBits = 16,
    parameter int unsigned Latency = 1  // of a sum through a PE, 1 to 3
) (
    input logic clk_i,
    // Clock enables: for activations, swaps and sums, and for the weights on their way in.
    input logic enable_i,
    input logic moving_i,
    // For the PEs of column 0, already skewed by row.
    input logic [Rows*ElementBits-1:0] act_i,
    input logic [Rows-1:0] swap_i,
    input logic [Rows-1:0] capture_i,
    // For the PEs of row 0, already skewed by column. A weight is {enable, value}.
    input logic [Columns*(ElementBits+1)-1:0] weight_i,
    input logic [Columns*32-1:0] psum_i,
    output logic [Columns*32-1:0] psum_o
);
  localparam int unsigned WeightBits = ElementBits + 1;

  // Wires between PEs: [r][c] enters PE (r, c).
  logic [ElementBits-1:0] act[Rows][Columns+1];
  logic swap[Rows][Columns+1];
  logic capture[Rows][Columns+1];
  logic [WeightBits-1:0] weight[Rows+1][Columns];
  logic [31:0] psum[Rows+1][Columns];

  for (genvar r = 0; r < Rows; r++) begin : gen_left
    assign act[r][0] = act_i[r*ElementBits+:ElementBits];
    assign swap[r][0] = swap_i[r];
    assign capture[r][0] = capture_i[r];
  end
  for (genvar c = 0; c < Columns; c++) begin : gen_top
    assign weight[0][c] = weight_i[c*WeightBits+:WeightBits];
    assign psum[0][c] = psum_i[c*32+:32];
    assign psum_o[c*32+:32] = psum[Rows][c];
  end
  for (genvar r = 0; r < Rows; r++) begin : gen_row
    for (genvar c = 0; c < Columns; c++) begin : gen_column
      mmu_pe #(
          .PeKind(PeKind),
          .ElementBits(ElementBits),
          .Latency(Latency)
      ) u_pe (
          .clk_i,
          .enable_i,
          .moving_i,
          .act_i(act[r][c]),
          .swap_i(swap[r][c]),
          .capture_i(capture[r][c]),
          .weight_i(weight[r][c]),
          .psum_i(psum[r][c]),
          .act_o(act[r][c+1]),
          .swap_o(swap[r][c+1]),
          .capture_o(capture[r][c+1]),
          .weight_o(weight[r+1][c]),
          .psum_o(psum[r+1][c])
      );
    end
  end
endmodule
