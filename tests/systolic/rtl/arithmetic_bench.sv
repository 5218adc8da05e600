// The functions of mmu_arithmetic_pkg as a module, for the test beside it.
// SPDX-License-Identifier: Apache-2.0
module arithmetic_bench (
    input logic [15:0] a_i,
    input logic [15:0] b_i,
    input logic [31:0] c_i,
    input logic [31:0] d_i,
    output logic [31:0] multiply_add_o,
    output logic [31:0] multiply_add_int8_o,
    output logic [31:0] add_o,
    output logic [31:0] multiply_o,
    output logic [31:0] requantize_o,  // c by multiplier d and shift a
    output logic [7:0] narrow_int8_o,
    output logic [15:0] narrow_o,
    output logic [31:0] rectify_o,
    output logic [1:0] greater_o  // c > d as binary32, as integers
);
  assign multiply_add_o = mmu_arithmetic_pkg::multiply_add(a_i, b_i, c_i);
  assign multiply_add_int8_o = mmu_arithmetic_pkg::multiply_add_int8(a_i[7:0], b_i[7:0], c_i);
  assign add_o = mmu_arithmetic_pkg::add(c_i, d_i);
  assign multiply_o = mmu_arithmetic_pkg::multiply(c_i, d_i);
  assign requantize_o = mmu_arithmetic_pkg::requantize(
      c_i, d_i, mmu_arithmetic_pkg::cut_shift(32'($signed(a_i))));
  assign narrow_int8_o = mmu_arithmetic_pkg::narrow_int8(c_i);
  assign narrow_o = mmu_arithmetic_pkg::narrow(c_i);
  assign greater_o = {mmu_arithmetic_pkg::greater(c_i, d_i, 1'b0),
                      mmu_arithmetic_pkg::greater(c_i, d_i, 1'b1)};
  assign rectify_o = mmu_arithmetic_pkg::rectify(c_i, 1'b1);
endmodule
