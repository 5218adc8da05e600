// The systolic array, Rows x Columns PEs, as one clocked block that simulates fast. Ports and
// cycles are those of mmu_array_grid, the same array as a grid of mmu_pe. It describes the work of
// a PE. Assignments are blocking and run against the data flow (a register's readers come before
// its writer), so every register is updated in place. Only the output is assigned as usual, for
// other clocked blocks read it. The block's own variables are not traced, here and elsewhere: only
// then are they locals of the simulator, and its loops fast.
// SPDX-License-Identifier: Apache-2.0
module mmu_array #(
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

  logic [ElementBits-1:0] act_q[Rows][Columns];
  logic [WeightBits-1:0] weight_q[Rows][Columns];   // on its way down, as it reaches the row below
  logic [WeightBits-1:0] shadow_q[Rows][Columns];
  logic [WeightBits-1:0] active_q[Rows][Columns];
  logic [31:0] psum_q[Rows+1][Columns];             // row r's operand, r-1's result. 0: the top's
  logic [Columns*32-1:0] bottom_q;
  // Stages inside PEs, where a sum takes several cycles.
  logic [31:0] product_q[Rows][Columns];
  logic [31:0] big_q[Rows][Columns];
  logic [31:0] little_q[Rows][Columns];
  logic [31:0] tag_q[Rows][Columns];
  logic [31:0] sum_q[Rows][Columns];
  logic [31:0] sum_tag_q[Rows][Columns];
  logic [Columns-1:0] swap_q[Rows];
  logic [Columns-1:0] capture_q[Rows];

  // verilator lint_off BLKSEQ
  // In-place updates: see the header comment.
  always_ff @(posedge clk_i) begin : sums
    // verilator tracing_off
    int unsigned i, r, c;
    logic [WeightBits-1:0] weight;
    logic [31:0] sum, product, big, little, tag;
    // verilator tracing_on
    i = 0;
    r = 0;
    c = 0;
    weight = '0;
    sum = '0;
    product = '0;
    big = '0;
    little = '0;
    tag = '0;
    if (enable_i) begin
      for (c = 0; c < Columns; c++) psum_q[0][c] = psum_i[c*32+:32];
      for (i = 0; i < Rows; i++) begin
        for (c = 0; c < Columns; c++) begin
          weight = active_q[Rows-1-i][c];
          if (Latency > 1) begin
            // The last stage first: each reads the previous stage's value of the last cycle.
            psum_q[Rows-i][c] = mmu_stages_pkg::pe_result(PeKind == 0, sum_q[Rows-1-i][c],
                                                          sum_tag_q[Rows-1-i][c]);
            product = product_q[Rows-1-i][c];
            sum = psum_q[Rows-1-i][c];
            big = mmu_stages_pkg::pe_big(PeKind == 0, product, sum);
            little = mmu_stages_pkg::pe_little(PeKind == 0, product, sum);
            tag = mmu_stages_pkg::pe_tag(PeKind == 0, product, sum);
            if (Latency == 3) begin
              product = big_q[Rows-1-i][c];
              big_q[Rows-1-i][c] = big;
              big = product;
              product = little_q[Rows-1-i][c];
              little_q[Rows-1-i][c] = little;
              little = product;
              product = tag_q[Rows-1-i][c];
              tag_q[Rows-1-i][c] = tag;
              tag = product;
            end
            sum_q[Rows-1-i][c] = mmu_stages_pkg::pe_sum(PeKind == 0, big, little, tag);
            sum_tag_q[Rows-1-i][c] = mmu_stages_pkg::pe_sum_tag(PeKind == 0, big, little, tag);
            product_q[Rows-1-i][c] = mmu_stages_pkg::product_of(
                PeKind == 0, 16'(act_q[Rows-1-i][c]), 16'(weight[ElementBits-1:0]),
                weight[ElementBits]);
          end else if (PeKind == 0) begin
            sum = mmu_arithmetic_pkg::multiply_add(16'(act_q[Rows-1-i][c]),
                                                   16'(weight[ElementBits-1:0]),
                                                   psum_q[Rows-1-i][c]);
          end else begin
            sum = mmu_arithmetic_pkg::multiply_add_int8(act_q[Rows-1-i][c][7:0], weight[7:0],
                                                        psum_q[Rows-1-i][c]);
          end
          if (Latency == 1) begin
            psum_q[Rows-i][c] = weight[ElementBits] ? sum : psum_q[Rows-1-i][c];
          end
        end
      end
      for (c = 0; c < Columns; c++) bottom_q[c*32+:32] <= psum_q[Rows][c];
      // The weights of the next matmul follow the last value of this one.
      for (r = 0; r < Rows; r++) begin
        swap_q[r] = (swap_q[r] << 1) | Columns'(swap_i[r]);
        if (swap_q[r] != '0) begin
          for (c = 0; c < Columns; c++) begin
            if (swap_q[r][c]) active_q[r][c] = shadow_q[r][c];
          end
        end
        for (i = 0; i < Columns - 1; i++) act_q[r][Columns-1-i] = act_q[r][Columns-2-i];
        act_q[r][0] = act_i[r*ElementBits+:ElementBits];
      end
    end
    if (moving_i) begin
      for (i = 0; i < Rows; i++) begin
        capture_q[Rows-1-i] = (capture_q[Rows-1-i] << 1) | Columns'(capture_i[Rows-1-i]);
        for (c = 0; c < Columns; c++) begin
          weight = (i == Rows - 1) ? weight_i[c*WeightBits+:WeightBits]
                                   : weight_q[(i==Rows-1)?0 : Rows-2-i][c];
          if (capture_q[Rows-1-i][c]) shadow_q[Rows-1-i][c] = weight;
          weight_q[Rows-1-i][c] = weight;
        end
      end
    end
  end
  // verilator lint_on BLKSEQ

  assign psum_o = bottom_q;
endmodule
