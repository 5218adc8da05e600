// The array with both dataflows as one clocked block that simulates fast, as mmu_array is for one.
// Ports and cycles are those of mmu_array_dual_grid. Assignments are blocking and run against the
// data flow (a register's readers come before its writer), so every register is updated in place.
// SPDX-License-Identifier: Apache-2.0
module mmu_array_dual #(
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

  logic [ElementBits-1:0] act_q[Rows][Columns];
  logic [WeightBits-1:0] weight_q[Rows][Columns];   // on its way down, as it reaches the row below
  logic [WeightBits-1:0] shadow_q[Rows][Columns];
  logic [WeightBits-1:0] active_q[Rows][Columns];
  logic [31:0] psum_q[Rows+1][Columns];             // row r's operand, r-1's result. 0: the top's
  logic [31:0] own_q[Rows][Columns];
  logic [31:0] hold_q[Rows][Columns];
  logic [Columns*32-1:0] bottom_q;
  logic [Columns-1:0] swap_q[Rows];
  logic [Columns-1:0] stay_q[Rows];
  logic [Columns-1:0] first_q[Rows];
  logic [Columns-1:0] last_q[Rows];
  logic [Columns-1:0] drain_q[Rows];
  logic [Columns-1:0] capture_q[Rows];

  // verilator lint_off BLKSEQ
  // In-place updates: see the header comment.
  always_ff @(posedge clk_i) begin : sums
    // verilator tracing_off
    int unsigned i, r, c;
    logic [WeightBits-1:0] weight;
    logic [31:0] addend, sum;
    // verilator tracing_on
    i = 0;
    r = 0;
    c = 0;
    weight = '0;
    addend = '0;
    sum = '0;
    if (enable_i) begin
      for (c = 0; c < Columns; c++) psum_q[0][c] = psum_i[c*32+:32];
      for (i = 0; i < Rows; i++) begin
        for (c = 0; c < Columns; c++) begin
          weight = stay_q[Rows-1-i][c] ? weight_q[Rows-1-i][c] : active_q[Rows-1-i][c];
          addend = !stay_q[Rows-1-i][c] ? psum_q[Rows-1-i][c]
                   : first_q[Rows-1-i][c] ? 32'd0 : own_q[Rows-1-i][c];
          if (PeKind == 0) begin
            sum = mmu_arithmetic_pkg::multiply_add(16'(act_q[Rows-1-i][c]),
                                                   16'(weight[ElementBits-1:0]), addend);
          end else begin
            sum = mmu_arithmetic_pkg::multiply_add_int8(act_q[Rows-1-i][c][7:0], weight[7:0],
                                                        addend);
          end
          sum = weight[ElementBits] ? sum : addend;
          psum_q[Rows-i][c] = drain_q[Rows-1-i][c] ? hold_q[Rows-1-i][c]
                              : stay_q[Rows-1-i][c] ? psum_q[Rows-1-i][c] : sum;
          own_q[Rows-1-i][c] = stay_q[Rows-1-i][c] ? sum : own_q[Rows-1-i][c];
          hold_q[Rows-1-i][c] = last_q[Rows-1-i][c] ? sum : hold_q[Rows-1-i][c];
        end
      end
      for (c = 0; c < Columns; c++) bottom_q[c*32+:32] <= psum_q[Rows][c];
      for (r = 0; r < Rows; r++) begin
        swap_q[r] = (swap_q[r] << 1) | Columns'(swap_i[r]);
        stay_q[r] = (stay_q[r] << 1) | Columns'(sum_i[4*r]);
        first_q[r] = (first_q[r] << 1) | Columns'(sum_i[4*r+1]);
        last_q[r] = (last_q[r] << 1) | Columns'(sum_i[4*r+2]);
        drain_q[r] = (drain_q[r] << 1) | Columns'(sum_i[4*r+3]);
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
