// The output unit: bias, ReLU and rounding of one accumulator row, shown in the next cycle; and the
// bias registers.
// SPDX-License-Identifier: Apache-2.0
module mmu_output #(
    parameter int unsigned Columns = 4,
    parameter int unsigned PeKind = 0  // 0: bf16, 1: int8
) (
    input logic clk_i,
    // LoadBias: the first `bias_columns_i` registers are written.
    input logic bias_write_i,
    input logic [15:0] bias_columns_i,
    input logic [Columns*32-1:0] bias_data_i,
    // A row of the accumulators.
    input logic valid_i,
    input logic [Columns*32-1:0] data_i,
    input logic bias_i,
    input logic relu_i,
    input logic narrow_i,  // to bf16, two per 32 bits
    output logic [Columns*32-1:0] data_o
);
  logic [31:0] bias_q[Columns];
  logic [Columns*32-1:0] data_q;

  // verilator lint_off BLKSEQ
  // In-place updates of arrays in loops, which the simulator would otherwise copy.
  always_ff @(posedge clk_i) begin : columns
    // verilator tracing_off
    int unsigned c;
    logic [31:0] value;
    // verilator tracing_on
    c = 0;
    value = '0;
    if (bias_write_i) begin
      for (c = 0; c < Columns; c++) begin
        if (16'(c) < bias_columns_i) bias_q[c] = bias_data_i[c*32+:32];
      end
    end
    if (valid_i) begin
      for (c = 0; c < Columns; c++) begin
        value = data_i[c*32+:32];
        if (bias_i) begin
          value = (PeKind == 0) ? mmu_arithmetic_pkg::add(value, bias_q[c]) : value + bias_q[c];
        end
        if (relu_i) value = mmu_arithmetic_pkg::rectify(value, PeKind == 0);
        if (narrow_i) data_q[c*16+:16] <= mmu_arithmetic_pkg::narrow(value);
        else data_q[c*32+:32] <= value;
      end
    end
  end
  // verilator lint_on BLKSEQ

  assign data_o = data_q;
endmodule
