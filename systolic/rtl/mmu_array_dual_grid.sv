// The array with both dataflows as a grid of mmu_pe_dual, wired to its neighbours. Same ports and
// same cycles as mmu_array_dual.
// SPDX-License-Identifier: Apache-2.0
module mmu_array_dual_grid #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned PeKind = 0,  // 0: bf16, 1: int8
    parameter int unsigned ElementBits = 16
) (
    input logic clk_i,
    // Clock enables: for activations, tokens and sums, and for the weights on their way in.
    input logic enable_i,
    input logic moving_i,
    // For the PEs of column 0, already skewed by row. sum_i: mmu_pe_dual's, 4 bits for each row.
    input logic [Rows*ElementBits-1:0] act_i,
    input logic [Rows-1:0] swap_i,
    input logic [Rows*4-1:0] sum_i,
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
  logic [3:0] sum[Rows][Columns+1];
  logic capture[Rows][Columns+1];
  logic [WeightBits-1:0] weight[Rows+1][Columns];
  logic [31:0] psum[Rows+1][Columns];

  for (genvar r = 0; r < Rows; r++) begin : gen_left
    assign act[r][0] = act_i[r*ElementBits+:ElementBits];
    assign swap[r][0] = swap_i[r];
    assign sum[r][0] = sum_i[r*4+:4];
    assign capture[r][0] = capture_i[r];
  end
  for (genvar c = 0; c < Columns; c++) begin : gen_top
    assign weight[0][c] = weight_i[c*WeightBits+:WeightBits];
    assign psum[0][c] = psum_i[c*32+:32];
    assign psum_o[c*32+:32] = psum[Rows][c];
  end
  for (genvar r = 0; r < Rows; r++) begin : gen_row
    for (genvar c = 0; c < Columns; c++) begin : gen_column
      mmu_pe_dual #(
          .PeKind(PeKind),
          .ElementBits(ElementBits)
      ) u_pe (
          .clk_i,
          .enable_i,
          .moving_i,
          .act_i(act[r][c]),
          .swap_i(swap[r][c]),
          .sum_i(sum[r][c]),
          .capture_i(capture[r][c]),
          .weight_i(weight[r][c]),
          .psum_i(psum[r][c]),
          .act_o(act[r][c+1]),
          .swap_o(swap[r][c+1]),
          .sum_o(sum[r][c+1]),
          .capture_o(capture[r][c+1]),
          .weight_o(weight[r+1][c]),
          .psum_o(psum[r+1][c])
      );
    end
  end
endmodule
