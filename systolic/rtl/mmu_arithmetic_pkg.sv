// The numbers of the MMU: bfloat16 fused multiply-add, binary32 addition, rounding to bfloat16.
// Subnormal operands count as zeros, results that are subnormal after rounding become zeros, every
// NaN is 0x7FC00000. All intermediate values are 32 bits wide and all shift amounts 5 bits, so that
// a simulator's compiler can vectorise the functions. Synthesis removes constant parts.
// SPDX-License-Identifier: Apache-2.0
package mmu_arithmetic_pkg;
  localparam logic [31:0] CANONICAL_NAN = 32'h7FC0_0000;
  localparam logic [31:0] INFINITY = 32'h7F80_0000;

  // Biased exponents carry this much more, so that those of products stay positive.
  localparam logic [31:0] EXPONENT_OFFSET = 32'd256;

  // An addition has three steps, each made of functions of its own, so that a PE or an output unit
  // can have registers between them. A number on its way into it is a sign (0 or 1), an exponent
  // (binary32's bias, plus EXPONENT_OFFSET) and a magnitude: m and e mean
  // m * 2^(e - EXPONENT_OFFSET - 127 - 29), bit 29 is binary32's hidden bit. A magnitude may have
  // its leading bit in 29 or 28, or be zero. It has at most 24 significant bits.

  // Exponent and magnitude of a binary32. Subnormal numbers are zero.
  function automatic logic [31:0] exponent_of(input logic [31:0] x);
    exponent_of = ((x >> 23) & 32'hFF) + EXPONENT_OFFSET;
  endfunction
  function automatic logic [31:0] magnitude_of(input logic [31:0] x);
    magnitude_of =
        (((x >> 23) & 32'hFF) != 32'd0) ? ((x & 32'h007F_FFFF) | 32'h0080_0000) << 6 : 32'd0;
  endfunction

  // First step. All ones when y has the larger exponent, else zero: y is the big operand then.
  function automatic logic [31:0] swap_of(input logic [31:0] exponent_x,
                                          input logic [31:0] exponent_y);
    swap_of = 32'd0 - ((exponent_x - exponent_y) >> 31);
  endfunction
  function automatic logic [31:0] choose(input logic [31:0] swap, input logic [31:0] x,
                                         input logic [31:0] y);
    choose = (y & swap) | (x & ~swap);
  endfunction
  // The little operand at the big one's exponent. Its last bit stands for all that are lost, too.
  //
  // The six guard bits hold every bit lost for up to 6 places of alignment, so the difference can
  // only turn negative (first operand the smaller one) when it is exact.
  function automatic logic [31:0] aligned(
      input logic [31:0] exponent_x, input logic [31:0] magnitude_x,
      input logic [31:0] exponent_y, input logic [31:0] magnitude_y);
    logic [31:0] distance, swap, little;
    logic [4:0] amount;
    swap = swap_of(exponent_x, exponent_y);
    distance = ((exponent_x - exponent_y) ^ swap) - swap;
    amount = (distance > 32'd31) ? 5'd31 : distance[4:0];
    little = choose(swap, magnitude_y, magnitude_x);
    aligned = (little >> amount) |
              (((little & ~(32'hFFFF_FFFF << amount)) != 32'd0) ? 32'd1 : 32'd0);
  endfunction

  // Second step: the sum's magnitude, and whether its sign is not the big operand's.
  function automatic logic [31:0] difference(input logic [31:0] subtract, input logic [31:0] big,
                                             input logic [31:0] little);
    difference = (subtract != 32'd0) ? big - little : big + little;
  endfunction
  function automatic logic [31:0] sum_of(input logic [31:0] subtract, input logic [31:0] big,
                                         input logic [31:0] little);
    logic [31:0] sum;
    sum = difference(subtract, big, little);
    sum_of = ((sum >> 31) != 32'd0) ? little - big : sum;
  endfunction

  // Third step: the leading bit goes to bit 31, by 0, 8, 16 or 24 places and then by 0 to 7.
  function automatic logic [31:0] coarse_places(input logic [31:0] sum);
    logic [31:0] rest;
    rest = (sum < 32'h0001_0000) ? sum << 16 : sum;
    coarse_places = ((sum < 32'h0001_0000) ? 32'd16 : 32'd0) |
                    ((rest < 32'h0100_0000) ? 32'd8 : 32'd0);
  endfunction
  function automatic logic [31:0] coarse(input logic [31:0] sum);
    logic [31:0] rest;
    rest = (sum < 32'h0001_0000) ? sum << 16 : sum;
    coarse = (rest < 32'h0100_0000) ? rest << 8 : rest;
  endfunction
  function automatic logic [31:0] fine_places(input logic [31:0] sum);
    logic [31:0] half, quarter;
    half = (sum < 32'h1000_0000) ? sum << 4 : sum;
    quarter = (half < 32'h4000_0000) ? half << 2 : half;
    fine_places = ((sum < 32'h1000_0000) ? 32'd4 : 32'd0) |
                  ((half < 32'h4000_0000) ? 32'd2 : 32'd0) |
                  ((quarter < 32'h8000_0000) ? 32'd1 : 32'd0);
  endfunction
  function automatic logic [31:0] fine(input logic [31:0] sum);
    logic [31:0] half, quarter;
    half = (sum < 32'h1000_0000) ? sum << 4 : sum;
    quarter = (half < 32'h4000_0000) ? half << 2 : half;
    fine = (quarter < 32'h8000_0000) ? quarter << 1 : quarter;
  endfunction
  // A binary32 without its sign: bit 31 of the sum means 2^(exponent - EXPONENT_OFFSET - 127). To
  // nearest, ties to even. A carry out of the fraction adds to the exponent.
  function automatic logic [31:0] rounded(input logic [31:0] exponent, input logic [31:0] sum);
    logic [31:0] fraction;
    fraction = ((exponent - EXPONENT_OFFSET) << 23) | ((sum >> 8) & 32'h007F_FFFF);
    fraction = fraction + ((sum >> 7) & (((sum & 32'h0000_017F) != 32'd0) ? 32'd1 : 32'd0));
    fraction = (exponent > EXPONENT_OFFSET + 32'd254) ? INFINITY : fraction;
    // Tiny after rounding, or zero: then no leading bit has reached bit 31.
    rounded = ((exponent + ((sum >= 32'hFFFF_FF80) ? 32'd1 : 32'd0) > EXPONENT_OFFSET) &&
               (sum >= 32'h8000_0000)) ? fraction : 32'd0;
  endfunction

  // x + y, rounded once: the three steps in one.
  function automatic logic [31:0] add_magnitudes(
      input logic [31:0] sign_x, input logic [31:0] exponent_x, input logic [31:0] magnitude_x,
      input logic [31:0] sign_y, input logic [31:0] exponent_y, input logic [31:0] magnitude_y);
    logic [31:0] swap, big, little, subtract, exponent, sign, sum;
    swap = swap_of(exponent_x, exponent_y);
    big = choose(swap, magnitude_x, magnitude_y);
    little = aligned(exponent_x, magnitude_x, exponent_y, magnitude_y);
    subtract = sign_x ^ sign_y;
    sum = sum_of(subtract, big, little);
    sign = choose(swap, sign_x, sign_y) ^ (difference(subtract, big, little) >> 31);
    sign = (sum == 32'd0) ? (sign_x & sign_y) : sign;
    exponent = choose(swap, exponent_x, exponent_y) + 32'd2;
    exponent = exponent - coarse_places(sum) - fine_places(coarse(sum));
    add_magnitudes = (sign << 31) | rounded(exponent, fine(coarse(sum)));
  endfunction

  // a * b + c for bfloat16 a and b and binary32 c: exact product, one rounding.
  function automatic logic [31:0] multiply_add(
      input logic [15:0] a, input logic [15:0] b, input logic [31:0] c);
    logic [31:0] exponent_a, exponent_b, exponent_c;
    logic [31:0] magnitude_a, magnitude_b;
    logic [31:0] product, sign_product, sign_c, exponent_product;
    logic [31:0] invalid, infinite, sum;
    exponent_a = (32'(a) >> 7) & 32'hFF;
    exponent_b = (32'(b) >> 7) & 32'hFF;
    exponent_c = (c >> 23) & 32'hFF;
    magnitude_a = (exponent_a != 32'd0) ? (32'(a) & 32'h7F) | 32'h80 : 32'd0;
    magnitude_b = (exponent_b != 32'd0) ? (32'(b) & 32'h7F) | 32'h80 : 32'd0;
    product = magnitude_a * magnitude_b;
    sign_product = 32'(a[15]) ^ 32'(b[15]);
    sign_c = c >> 31;
    exponent_product =
        (product != 32'd0) ? exponent_a + exponent_b + (EXPONENT_OFFSET - 32'd126) : 32'd0;
    sum = add_magnitudes(sign_product, exponent_product, product << 14,
                         sign_c, exponent_of(c), magnitude_of(c));

    // NaN operands, infinity times zero, infinity minus infinity, then infinite operands.
    infinite = ((exponent_a == 32'd255) || (exponent_b == 32'd255)) ? 32'd1 : 32'd0;
    invalid = (((32'(a) & 32'h7FFF) > 32'h7F80) || ((32'(b) & 32'h7FFF) > 32'h7F80) ||
               ((c & 32'h7FFF_FFFF) > INFINITY) ||
               ((infinite != 32'd0) && (product == 32'd0)) ||
               ((infinite != 32'd0) && (exponent_c == 32'd255) && (sign_c != sign_product)))
        ? 32'd1 : 32'd0;
    sum = (exponent_c == 32'd255) ? c : sum;
    sum = (infinite != 32'd0) ? (sign_product << 31) | INFINITY : sum;
    multiply_add = (invalid != 32'd0) ? CANONICAL_NAN : sum;
  endfunction

  // x + y for binary32.
  function automatic logic [31:0] add(input logic [31:0] x, input logic [31:0] y);
    logic [31:0] exponent_x, exponent_y, invalid, sum;
    exponent_x = (x >> 23) & 32'hFF;
    exponent_y = (y >> 23) & 32'hFF;
    sum = add_magnitudes(x >> 31, exponent_of(x), magnitude_of(x),
                         y >> 31, exponent_of(y), magnitude_of(y));
    invalid = (((x & 32'h7FFF_FFFF) > INFINITY) || ((y & 32'h7FFF_FFFF) > INFINITY) ||
               ((exponent_x == 32'd255) && (exponent_y == 32'd255) && (x != y))) ? 32'd1 : 32'd0;
    sum = (exponent_y == 32'd255) ? y : sum;
    sum = (exponent_x == 32'd255) ? x : sum;
    add = (invalid != 32'd0) ? CANONICAL_NAN : sum;
  endfunction

  // A binary32 without its sign: bit 47 of the product means 2^(exponent - EXPONENT_OFFSET - 127).
  function automatic logic [31:0] rounded_product(input logic [31:0] exponent,
                                                  input logic [47:0] product);
    rounded_product = rounded(exponent - 32'(!product[47]),
                              product[47] ? {product[47:17], product[16:0] != '0}
                                          : {product[46:16], product[15:0] != '0});
  endfunction

  // x * y for binary32, rounded once.
  function automatic logic [31:0] multiply(input logic [31:0] x, input logic [31:0] y);
    logic [31:0] exponent_x, exponent_y, sign, fraction, zero, infinite, invalid;
    logic [47:0] product;
    exponent_x = (x >> 23) & 32'hFF;
    exponent_y = (y >> 23) & 32'hFF;
    sign = (x ^ y) >> 31;
    product = 48'({1'b1, x[22:0]}) * 48'({1'b1, y[22:0]});
    fraction = rounded_product(exponent_x + exponent_y + (EXPONENT_OFFSET - 32'd126), product);
    zero = ((exponent_x == 32'd0) || (exponent_y == 32'd0)) ? 32'd1 : 32'd0;
    infinite = ((exponent_x == 32'd255) || (exponent_y == 32'd255)) ? 32'd1 : 32'd0;
    fraction = (zero != 32'd0) ? 32'd0 : (infinite != 32'd0) ? INFINITY : fraction;
    invalid = (((x & 32'h7FFF_FFFF) > INFINITY) || ((y & 32'h7FFF_FFFF) > INFINITY) ||
               ((zero != 32'd0) && (infinite != 32'd0))) ? 32'd1 : 32'd0;
    multiply = (invalid != 32'd0) ? CANONICAL_NAN : (sign << 31) | fraction;
  endfunction

  // int64 to int32, cut.
  function automatic logic [31:0] cut_to_32(input logic [63:0] x);
    cut_to_32 = (x[63:31] == {33{x[63]}}) ? x[31:0] : {x[63], {31{!x[63]}}};
  endfunction

  // (sum * multiplier + 2^(shift - 1)) >> shift, cut to 32 bits. Shift is 1 to 62.
  function automatic logic [31:0] requantize(
      input logic [31:0] sum, input logic [31:0] multiplier, input logic [5:0] shift);
    logic [63:0] product;
    product = 64'($signed(sum)) * 64'($signed(multiplier));
    product = product + (64'd1 << (shift - 6'd1));
    product = $signed(product) >>> shift;
    requantize = cut_to_32(product);
  endfunction

  // x + y, cut to 32 bits.
  function automatic logic [31:0] add_cut(input logic [31:0] x, input logic [31:0] y);
    logic [32:0] sum;
    sum = {x[31], x} + {y[31], y};
    add_cut = (sum[32] == sum[31]) ? sum[31:0] : {sum[32], {31{!sum[32]}}};
  endfunction

  // Bits of an int32 that a shift register keeps: 1 to 62.
  function automatic logic [5:0] cut_shift(input logic [31:0] x);
    cut_shift = ($signed(x) < 32'sd1) ? 6'd1 : ($signed(x) > 32'sd62) ? 6'd62 : x[5:0];
  endfunction

  // int32 to int8, cut.
  function automatic logic [7:0] narrow_int8(input logic [31:0] x);
    narrow_int8 = (x[31:7] == {25{x[31]}}) ? x[7:0] : {x[31], {7{!x[31]}}};
  endfunction

  // binary32 to bfloat16, to nearest even.
  function automatic logic [15:0] narrow(input logic [31:0] x);
    narrow = ((x & 32'h7FFF_FFFF) > INFINITY) ? CANONICAL_NAN[31:16]
                                              : x[31:16] + 16'((x[15:0] > 16'h8000) ||
                                                               ((x[15:0] == 16'h8000) && x[16]));
  endfunction

  // x > 0 ? x : +0. A binary32 NaN stays.
  function automatic logic [31:0] rectify(input logic [31:0] x, input logic is_float);
    rectify = (x[31] && !(is_float && ((x & 32'h7FFF_FFFF) > INFINITY))) ? 32'd0 : x;
  endfunction

  // x > y. For binary32 false where one is NaN, and the zeros are equal.
  function automatic logic greater(input logic [31:0] x, input logic [31:0] y,
                                   input logic is_float);
    logic [31:0] ordered_x, ordered_y;
    ordered_x = (is_float && x[31]) ? x ^ 32'h7FFF_FFFF : x;
    ordered_y = (is_float && y[31]) ? y ^ 32'h7FFF_FFFF : y;
    greater = ($signed(ordered_x) > $signed(ordered_y)) &&
              !(is_float && (((x & 32'h7FFF_FFFF) > INFINITY) || ((y & 32'h7FFF_FFFF) > INFINITY) ||
                             (((x | y) & 32'h7FFF_FFFF) == 32'd0)));
  endfunction

  // psum + activation * weight for int8, wrapping.
  function automatic logic [31:0] multiply_add_int8(
      input logic [7:0] a, input logic [7:0] b, input logic [31:0] c);
    multiply_add_int8 = c + 32'($signed(a)) * 32'($signed(b));
  endfunction
endpackage
