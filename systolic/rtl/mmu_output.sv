// The output unit: scale, bias, ReLU and rounding of one accumulator row, shown in the next cycle;
// and the registers of its columns.
//   bf16: x * multiplier, + bias, ReLU, to bf16.
//   int8: x + bias, requantised by multiplier and shift, ReLU, to int8.
// SPDX-License-Identifier: Apache-2.0
module mmu_output #(
    parameter int unsigned Columns = 4,
    parameter int unsigned PeKind = 0  // 0: bf16, 1: int8
) (
    input logic clk_i,
    // LoadRegisters: the first `registers_columns_i` of a file are written.
    input logic registers_write_i,
    input logic [1:0] registers_file_i,  // 0: bias, 1: multiplier, 2: shift
    input logic [15:0] registers_columns_i,
    input logic [Columns*32-1:0] registers_data_i,
    // A row of the accumulators.
    input logic valid_i,
    input logic [Columns*32-1:0] data_i,
    input logic scale_i,
    input logic bias_i,
    input logic relu_i,
    input logic narrow_i,  // to bf16 or int8, without gaps
    output logic [Columns*32-1:0] data_o
);
  logic [31:0] bias_q[Columns];
  logic [31:0] multiplier_q[Columns];
  logic [5:0] shift_q[Columns];  // of int8 machines
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
    if (registers_write_i) begin
      for (c = 0; c < Columns; c++) begin
        if (16'(c) < registers_columns_i) begin
          value = registers_data_i[c*32+:32];
          if (registers_file_i == 2'd0) bias_q[c] = value;
          if (registers_file_i == 2'd1) multiplier_q[c] = value;
          if (registers_file_i == 2'd2) shift_q[c] = mmu_arithmetic_pkg::cut_shift(value);
        end
      end
    end
    if (valid_i) begin
      for (c = 0; c < Columns; c++) begin
        value = data_i[c*32+:32];
        if (PeKind == 0) begin
          if (scale_i) value = mmu_arithmetic_pkg::multiply(value, multiplier_q[c]);
          if (bias_i) value = mmu_arithmetic_pkg::add(value, bias_q[c]);
        end else begin
          if (bias_i) value = value + bias_q[c];
          if (scale_i) value = mmu_arithmetic_pkg::requantize(value, multiplier_q[c], shift_q[c]);
        end
        if (relu_i) value = mmu_arithmetic_pkg::rectify(value, PeKind == 0);
        if (!narrow_i) data_q[c*32+:32] <= value;
        else if (PeKind == 0) data_q[c*16+:16] <= mmu_arithmetic_pkg::narrow(value);
        else data_q[c*8+:8] <= mmu_arithmetic_pkg::narrow_int8(value);
      end
    end
  end
  // verilator lint_on BLKSEQ

  assign data_o = data_q;
endmodule
