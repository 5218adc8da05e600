// The arithmetic of a vector lane: binary32 with a fused multiply-add, comparisons, conversion of
// integers. Subnormal operands of arithmetic and of comparisons count as zeros, results that are
// subnormal after rounding become zeros, every NaN that arithmetic gives is 0x7FC00000.
// SPDX-License-Identifier: Apache-2.0
package mmu_vector_pkg;
  localparam logic [31:0] ONE = 32'h3F80_0000, MINUS_ZERO = 32'h8000_0000;

  // Actions of the vector unit in a cycle, for the counters. Rows have a value for each column.
  typedef struct packed {
    logic runs;         // it has an instruction, or takes one
    logic sums;         // reads a row of accumulators
    logic [1:0] reads;  // rows of its memory
    logic write;        // a row of it
    logic add, multiply, fma, other;  // the arithmetic of a row that an operation writes
  } actions_t;

  function automatic logic is_nan(input logic [31:0] x);
    is_nan = (x & 32'h7FFF_FFFF) > mmu_arithmetic_pkg::INFINITY;
  endfunction
  function automatic logic is_infinite(input logic [31:0] x);
    is_infinite = (x & 32'h7FFF_FFFF) == mmu_arithmetic_pkg::INFINITY;
  endfunction
  function automatic logic is_zero(input logic [31:0] x);
    is_zero = (x & 32'h7F80_0000) == 32'd0;
  endfunction
  function automatic logic [31:0] flushed(input logic [31:0] x);
    flushed = is_zero(x) ? x & 32'h8000_0000 : x;
  endfunction

  // Products. Significands multiply exactly. Bit 47 of the product means
  // 2^(exponent - EXPONENT_OFFSET - 127).
  function automatic logic [47:0] product_of(input logic [31:0] x, input logic [31:0] y);
    product_of = (is_zero(x) || is_zero(y)) ? 48'd0
                                            : 48'({1'b1, x[22:0]}) * 48'({1'b1, y[22:0]});
  endfunction
  function automatic logic [9:0] exponent_of_product(input logic [31:0] x, input logic [31:0] y);
    exponent_of_product =
        (is_zero(x) || is_zero(y)) ? 10'd0
        : 10'(x[30:23]) + 10'(y[30:23]) + 10'(mmu_arithmetic_pkg::EXPONENT_OFFSET - 32'd126);
  endfunction
  // x * y + z is a NaN.
  function automatic logic is_invalid(input logic [31:0] x, input logic [31:0] y,
                                      input logic [31:0] z);
    is_invalid = is_nan(x) || is_nan(y) || is_nan(z) || (is_infinite(x) && is_zero(y)) ||
                 (is_zero(x) && is_infinite(y)) ||
                 ((is_infinite(x) || is_infinite(y)) && is_infinite(z) &&
                  (x[31] ^ y[31] ^ z[31]));
  endfunction

  // A finite product plus z, rounded once. Both lie in 64 bits: bit 61 is z's hidden bit, and the
  // last bit stands for all that alignment loses, too. A difference turns negative only when the
  // exponents differ by at most one, and is exact then.
  function automatic logic [31:0] add_product(input logic sign_product, input logic [9:0] exponent,
                                              input logic [47:0] product, input logic [31:0] z);
    logic [9:0] exponent_z, exponent_big, distance;
    logic [63:0] magnitude_z, big, little, sum;
    logic [31:0] places;
    logic swap, negative, sign;
    exponent_z = 10'(mmu_arithmetic_pkg::exponent_of(z));
    magnitude_z = is_zero(z) ? 64'd0 : {2'b00, 1'b1, z[22:0], 38'd0};
    swap = exponent < exponent_z;
    big = swap ? magnitude_z : {2'b00, product, 14'd0};
    little = swap ? {2'b00, product, 14'd0} : magnitude_z;
    exponent_big = swap ? exponent_z : exponent;
    distance = swap ? exponent_z - exponent : exponent - exponent_z;
    if (distance > 10'd63) distance = 10'd63;
    little = (little >> distance) |
             64'((little & ~(64'hFFFF_FFFF_FFFF_FFFF << distance)) != 64'd0);
    sum = (sign_product ^ z[31]) ? big - little : big + little;
    negative = sum[63];
    if (negative) sum = little - big;
    sign = (sum == 64'd0) ? sign_product & z[31] : (swap ? z[31] : sign_product) ^ negative;
    places = 32'd0;
    for (int unsigned i = 32; i != 0; i = i >> 1) begin
      if ((sum >> (64 - i)) == 64'd0) begin
        sum = sum << i;
        places = places + i;
      end
    end
    add_product = (32'(sign) << 31) |
        mmu_arithmetic_pkg::rounded(32'(exponent_big) + 32'd2 - places,
                                    {sum[63:33], sum[32:0] != 33'd0});
  endfunction

  // x > y, x = y. False where one is NaN. The zeros are equal.
  function automatic logic greater(input logic [31:0] x, input logic [31:0] y);
    greater = mmu_arithmetic_pkg::greater(flushed(x), flushed(y), 1'b1);
  endfunction
  function automatic logic equal(input logic [31:0] x, input logic [31:0] y);
    equal = ((x == y) || (is_zero(x) && is_zero(y))) && !is_nan(x) && !is_nan(y);
  endfunction

  // int32 to binary32, to nearest even.
  function automatic logic [31:0] to_float(input logic [31:0] x);
    logic [31:0] magnitude, coarse, places;
    magnitude = x[31] ? 32'd0 - x : x;
    coarse = mmu_arithmetic_pkg::coarse(magnitude);
    places = mmu_arithmetic_pkg::coarse_places(magnitude) + mmu_arithmetic_pkg::fine_places(coarse);
    to_float = (x & 32'h8000_0000) |
               mmu_arithmetic_pkg::rounded(
                   mmu_arithmetic_pkg::EXPONENT_OFFSET + 32'd158 - places,
                   mmu_arithmetic_pkg::fine(coarse));
  endfunction
endpackage
