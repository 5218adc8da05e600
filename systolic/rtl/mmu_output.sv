// The output unit: converts a row of accumulators, visible in the next cycle, and holds the
// registers of its columns.
//   bf16: x * multiplier, + bias, the largest of a pool, operand, ReLU, to bf16.
//   int8: x + bias, requantised by multiplier and shift, the same, to int8.
// SPDX-License-Identifier: Apache-2.0
module mmu_output #(
    parameter int unsigned Columns = 4,
    parameter int unsigned PeKind = 0  // 0: bf16, 1: int8
) (
    input logic clk_i,
    input logic [15:0] columns_i,  // in use: the first ones
    // LoadRegisters: those of a file are written.
    input logic registers_write_i,
    input logic [1:0] registers_file_i,  // 0: bias, 1: multiplier, 2: shift
    input logic [Columns*32-1:0] registers_data_i,
    // A row of the accumulators. The output of a position is the result of its last row.
    input logic valid_i,
    input logic first_i,
    input logic last_i,
    input logic [15:0] flags_i,  // of the Store: mmu_pkg::store_flags_t
    input logic [Columns*32-1:0] data_i,
    input logic [Columns*32-1:0] operand_i,  // with the last row
    output logic [Columns*32-1:0] data_o  // without gaps
);
  localparam int unsigned MASK_BITS = (Columns + 7) / 8 * 8;

  logic [31:0] bias_q[Columns];
  logic [31:0] multiplier_q[Columns];
  logic [5:0] shift_q[Columns];  // of int8 machines
  logic [31:0] pool_q[Columns];  // the largest so far
  logic [Columns*32-1:0] data_q;

  mmu_pkg::store_flags_t flags;
  logic bias, relu, narrow, scale, pool, mask, residual, select;
  assign flags = flags_i;
  assign bias = flags.bias;
  assign relu = flags.relu;
  assign narrow = flags.narrow;
  assign scale = flags.scale;
  assign pool = flags.pool;
  assign mask = flags.mask;
  assign residual = flags.residual;
  assign select = flags.select;

  // verilator lint_off BLKSEQ
  // In-place updates of arrays in loops, which the simulator would otherwise copy.
  always_ff @(posedge clk_i) begin : columns
    // verilator tracing_off
    int unsigned c;
    logic [31:0] value, operand;
    // verilator tracing_on
    c = 0;
    value = '0;
    operand = '0;
    if (registers_write_i) begin
      for (c = 0; c < Columns; c++) begin
        if (16'(c) < columns_i) begin
          value = registers_data_i[c*32+:32];
          if (registers_file_i == 2'd0) bias_q[c] = value;
          if (registers_file_i == 2'd1) multiplier_q[c] = value;
          if (registers_file_i == 2'd2) shift_q[c] = mmu_arithmetic_pkg::cut_shift(value);
        end
      end
    end
    if (valid_i) begin
      if (last_i && mask) data_q[MASK_BITS-1:0] <= '0;
      for (c = 0; c < Columns; c++) begin
        value = data_i[c*32+:32];
        if (PeKind == 0) begin
          if (scale) value = mmu_arithmetic_pkg::multiply(value, multiplier_q[c]);
          if (bias) value = mmu_arithmetic_pkg::add(value, bias_q[c]);
        end else begin
          if (bias) value = value + bias_q[c];
          if (scale) value = mmu_arithmetic_pkg::requantize(value, multiplier_q[c], shift_q[c]);
        end
        if (pool) begin
          if (!first_i && !mmu_arithmetic_pkg::greater(value, pool_q[c], PeKind == 0))
            value = pool_q[c];
          pool_q[c] = value;
        end
        if (residual) begin
          if (!narrow) operand = operand_i[c*32+:32];
          else if (PeKind == 0) operand = {operand_i[c*16+:16], 16'd0};
          else operand = 32'($signed(operand_i[c*8+:8]));
          value = (PeKind == 0) ? mmu_arithmetic_pkg::add(value, operand)
                                : mmu_arithmetic_pkg::add_cut(value, operand);
        end
        if (select && !operand_i[c]) value = '0;
        if (relu) value = mmu_arithmetic_pkg::rectify(value, PeKind == 0);
        if (last_i) begin
          if (mask) begin
            if (c < 32'(columns_i))
              data_q[c] <= mmu_arithmetic_pkg::greater(value, 32'd0, PeKind == 0);
          end else if (!narrow) data_q[c*32+:32] <= value;
          else if (PeKind == 0) data_q[c*16+:16] <= mmu_arithmetic_pkg::narrow(value);
          else data_q[c*8+:8] <= mmu_arithmetic_pkg::narrow_int8(value);
        end
      end
    end
  end
  // verilator lint_on BLKSEQ

  assign data_o = data_q;
endmodule
