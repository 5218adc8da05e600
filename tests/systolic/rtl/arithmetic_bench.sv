// The functions of mmu_arithmetic_pkg as a module, for the test beside it.
// SPDX-License-Identifier: Apache-2.0
module arithmetic_bench (
    input logic [15:0] a_i,
    input logic [15:0] b_i,
    input logic [31:0] c_i,
    input logic [31:0] d_i,
    output logic [31:0] multiply_add_o,
    output logic [31:0] multiply_add_int8_o,
    output logic [31:0] stages_o,       // the same as a PE of several stages makes them
    output logic [31:0] stages_int8_o,
    output logic [31:0] passes_o,       // c past a disabled weight
    output logic [31:0] passes_int8_o,
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
  for (genvar kind = 0; kind < 4; kind++) begin : gen_stages
    logic [31:0] product, big, little, tag, sum, sum_tag, result;
    assign product = mmu_stages_pkg::product_of(kind < 2, a_i, b_i, kind % 2 == 0);
    assign big = mmu_stages_pkg::pe_big(kind < 2, product, c_i);
    assign little = mmu_stages_pkg::pe_little(kind < 2, product, c_i);
    assign tag = mmu_stages_pkg::pe_tag(kind < 2, product, c_i);
    assign sum = mmu_stages_pkg::pe_sum(kind < 2, big, little, tag);
    assign sum_tag = mmu_stages_pkg::pe_sum_tag(kind < 2, big, little, tag);
    assign result = mmu_stages_pkg::pe_result(kind < 2, sum, sum_tag);
  end
  assign stages_o = gen_stages[0].result;
  assign passes_o = gen_stages[1].result;
  assign stages_int8_o = gen_stages[2].result;
  assign passes_int8_o = gen_stages[3].result;
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
