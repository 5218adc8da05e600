// The array as one block and as a grid of PEs, side by side on the same inputs.
// SPDX-License-Identifier: Apache-2.0
module array_bench #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 3,
    parameter int unsigned PeKind = 0,
    parameter int unsigned ElementBits = 16,
    parameter int unsigned Latency = 1
) (
    input logic clk_i,
    input logic enable_i,
    input logic moving_i,
    input logic [Rows*ElementBits-1:0] act_i,
    input logic [Rows-1:0] swap_i,
    input logic [Rows-1:0] capture_i,
    input logic [Columns*(ElementBits+1)-1:0] weight_i,
    input logic [Columns*32-1:0] psum_i,
    output logic [Columns*32-1:0] block_o,
    output logic [Columns*32-1:0] grid_o
);
  mmu_array #(
      .Rows(Rows),
      .Columns(Columns),
      .PeKind(PeKind),
      .ElementBits(ElementBits),
      .Latency(Latency)
  ) u_block (
      .clk_i, .enable_i, .moving_i, .act_i, .swap_i, .capture_i, .weight_i, .psum_i,
      .psum_o(block_o));
  mmu_array_grid #(
      .Rows(Rows),
      .Columns(Columns),
      .PeKind(PeKind),
      .ElementBits(ElementBits),
      .Latency(Latency)
  ) u_grid (
      .clk_i, .enable_i, .moving_i, .act_i, .swap_i, .capture_i, .weight_i, .psum_i,
      .psum_o(grid_o));
endmodule
