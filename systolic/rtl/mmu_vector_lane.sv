// One lane of the vector unit. Its result follows the operands by two cycles: in the first one it
// multiplies, or does all of an operation that needs no addition. In the second one it adds and
// rounds.
//   add a * 1 + b   subtract a * 1 + (-b)   multiply a * b + (-0)   fma a * b + c
// SPDX-License-Identifier: Apache-2.0
module mmu_vector_lane (
    input logic clk_i,
    input logic enable_i,           // some row is on its way
    input logic [4:0] operation_i,  // constant until that row has left
    input logic [31:0] a_i,
    input logic [31:0] b_i,
    input logic [31:0] c_i,
    output logic [31:0] result_o
);
  logic [31:0] factor, addend, other;  // other: the result of an operation without an addition
  logic adds, greater;
  assign adds = (operation_i >= mmu_pkg::OPERATION_ADD) && (operation_i <= mmu_pkg::OPERATION_FMA);
  assign greater = mmu_vector_pkg::greater(a_i, b_i);

  always_comb begin
    unique case (operation_i)
      mmu_pkg::OPERATION_MULTIPLY: {factor, addend} = {b_i, mmu_vector_pkg::MINUS_ZERO};
      mmu_pkg::OPERATION_FMA: {factor, addend} = {b_i, c_i};
      mmu_pkg::OPERATION_SUBTRACT:
      {factor, addend} = {mmu_vector_pkg::ONE, b_i ^ mmu_vector_pkg::MINUS_ZERO};
      default: {factor, addend} = {mmu_vector_pkg::ONE, b_i};
    endcase
  end

  always_comb begin
    unique case (operation_i)
      mmu_pkg::OPERATION_FILL: other = b_i;
      mmu_pkg::OPERATION_LARGER: other = greater ? a_i : b_i;
      mmu_pkg::OPERATION_SMALLER: other = mmu_vector_pkg::greater(b_i, a_i) ? a_i : b_i;
      mmu_pkg::OPERATION_GREATER: other = {32{greater}};
      mmu_pkg::OPERATION_EQUAL: other = {32{mmu_vector_pkg::equal(a_i, b_i)}};
      mmu_pkg::OPERATION_SELECT: other = (a_i & c_i) | (b_i & ~c_i);
      mmu_pkg::OPERATION_AND: other = a_i & b_i;
      mmu_pkg::OPERATION_OR: other = a_i | b_i;
      mmu_pkg::OPERATION_XOR: other = a_i ^ b_i;
      mmu_pkg::OPERATION_ADD_INTEGER: other = a_i + b_i;
      mmu_pkg::OPERATION_SUBTRACT_INTEGER: other = a_i - b_i;
      mmu_pkg::OPERATION_SHIFT_LEFT: other = a_i << b_i[4:0];
      mmu_pkg::OPERATION_SHIFT_RIGHT: other = a_i >> b_i[4:0];
      mmu_pkg::OPERATION_TO_FLOAT: other = mmu_vector_pkg::to_float(a_i);
      default: other = a_i;
    endcase
  end

  logic [47:0] product_q;
  logic [9:0] exponent_q;
  logic sign_q, invalid_q, infinite_q;
  logic [31:0] addend_q;  // or the result of an operation without an addition
  logic [31:0] result_q, sum;

  always_comb begin
    sum = mmu_vector_pkg::add_product(sign_q, exponent_q, product_q, addend_q);
    if (mmu_vector_pkg::is_infinite(addend_q)) sum = addend_q;
    if (infinite_q) sum = {sign_q, mmu_arithmetic_pkg::INFINITY[30:0]};
    if (invalid_q) sum = mmu_arithmetic_pkg::CANONICAL_NAN;
  end

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      if (adds) begin
        product_q <= mmu_vector_pkg::product_of(a_i, factor);
        exponent_q <= mmu_vector_pkg::exponent_of_product(a_i, factor);
        sign_q <= a_i[31] ^ factor[31];
        infinite_q <= mmu_vector_pkg::is_infinite(a_i) || mmu_vector_pkg::is_infinite(factor);
        invalid_q <= mmu_vector_pkg::is_invalid(a_i, factor, addend);
      end
      addend_q <= adds ? addend : other;
      result_q <= adds ? sum : addend_q;
    end
  end

  assign result_o = result_q;
endmodule
