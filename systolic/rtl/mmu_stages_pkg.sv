// Arithmetic with registers inside: each function makes a word of a stage from the words of the
// stage before. First the three stages of a binary32 addition, then the stages of a PE with sums of
// several cycles. Their final result is that of mmu_arithmetic_pkg in one cycle.
//   addition: big, little, tag of it | sum, tag of it | result
//   tag      {14'b0, coarse places / 8 [1:0], pass, infinite, nan, sign of a zero, subtract, sign,
//             exponent[9:0]}. Pass: the result is big
//   product  bf16: {2'b0, enabled, nan, infinite, sign, exponent[9:0], significand[15:0]}
//            int8: {2'b0, enabled, 5'b0, act * high nibble of the weight [11:0], * low one [11:0]}
// SPDX-License-Identifier: Apache-2.0
package mmu_stages_pkg;
  function automatic logic [31:0] is_nan(input logic [31:0] x);
    is_nan = ((x & 32'h7FFF_FFFF) > mmu_arithmetic_pkg::INFINITY) ? 32'd1 : 32'd0;
  endfunction
  function automatic logic [31:0] is_infinite(input logic [31:0] x);
    is_infinite = ((x & 32'h7F80_0000) == mmu_arithmetic_pkg::INFINITY) ? 32'd1 : 32'd0;
  endfunction

  // The tag of x + y. Infinite operands, and the NaNs among them, count as infinite. Nan: one of
  // them is a NaN. Pass: nothing is added.
  function automatic logic [31:0] tag_of(
      input logic [31:0] pass, input logic [31:0] nan,
      input logic [31:0] infinite_x, input logic [31:0] sign_x, input logic [31:0] exponent_x,
      input logic [31:0] infinite_y, input logic [31:0] sign_y, input logic [31:0] exponent_y);
    logic [31:0] swap, infinite, subtract, sign;
    swap = mmu_arithmetic_pkg::swap_of(exponent_x, exponent_y);
    infinite = infinite_x | infinite_y;
    subtract = (infinite != 32'd0) ? 32'd0 : sign_x ^ sign_y;
    sign = (infinite_x != 32'd0) ? sign_x : (infinite_y != 32'd0) ? sign_y
        : mmu_arithmetic_pkg::choose(swap, sign_x, sign_y);
    tag_of = (pass << 15) | (infinite << 14) |
             ((nan | (infinite_x & infinite_y & (sign_x ^ sign_y))) << 13) |
             ((sign_x & sign_y) << 12) | (subtract << 11) | (sign << 10) |
             (mmu_arithmetic_pkg::choose(swap, exponent_x, exponent_y) + 32'd2);
  endfunction

  function automatic logic [31:0] sum_of(input logic [31:0] big, input logic [31:0] little,
                                         input logic [31:0] tag);
    logic [31:0] sum;
    sum = mmu_arithmetic_pkg::sum_of((tag >> 11) & 32'd1, big, little);
    sum_of = (((tag >> 15) & 32'd1) != 32'd0) ? big : mmu_arithmetic_pkg::coarse(sum);
  endfunction
  function automatic logic [31:0] sum_tag_of(input logic [31:0] big, input logic [31:0] little,
                                             input logic [31:0] tag);
    logic [31:0] subtract, sum, negative;
    subtract = (tag >> 11) & 32'd1;
    sum = mmu_arithmetic_pkg::sum_of(subtract, big, little);
    negative = mmu_arithmetic_pkg::difference(subtract, big, little) >> 31;
    sum_tag_of = (tag ^ (negative << 10)) | (mmu_arithmetic_pkg::coarse_places(sum) << 13);
  endfunction

  function automatic logic [31:0] result_of(input logic [31:0] sum, input logic [31:0] tag);
    logic [31:0] normal, exponent, sign, infinite, magnitude;
    normal = mmu_arithmetic_pkg::fine(sum);
    exponent = (tag & 32'h3FF) - ((tag >> 13) & 32'd24) - mmu_arithmetic_pkg::fine_places(sum);
    infinite = (tag >> 14) & 32'd1;
    sign = ((infinite != 32'd0) || ((normal >> 31) != 32'd0)) ? tag >> 10 : tag >> 12;
    magnitude = (infinite != 32'd0) ? mmu_arithmetic_pkg::INFINITY
                                    : mmu_arithmetic_pkg::rounded(exponent, normal);
    result_of = ((sign & 32'd1) << 31) | magnitude;
    result_of = (((tag >> 13) & 32'd1) != 32'd0) ? mmu_arithmetic_pkg::CANONICAL_NAN : result_of;
    result_of = (((tag >> 15) & 32'd1) != 32'd0) ? sum : result_of;
  endfunction

  // An addition of binary32 numbers x and y, or, with pass, x alone.
  function automatic logic [31:0] float_big(input logic pass, input logic [31:0] x,
                                            input logic [31:0] y);
    logic [31:0] swap;
    swap = mmu_arithmetic_pkg::swap_of(mmu_arithmetic_pkg::exponent_of(x),
                                       mmu_arithmetic_pkg::exponent_of(y));
    float_big = pass ? x : mmu_arithmetic_pkg::choose(swap, mmu_arithmetic_pkg::magnitude_of(x),
                                                      mmu_arithmetic_pkg::magnitude_of(y));
  endfunction
  function automatic logic [31:0] float_little(input logic [31:0] x, input logic [31:0] y);
    float_little = mmu_arithmetic_pkg::aligned(
        mmu_arithmetic_pkg::exponent_of(x), mmu_arithmetic_pkg::magnitude_of(x),
        mmu_arithmetic_pkg::exponent_of(y), mmu_arithmetic_pkg::magnitude_of(y));
  endfunction
  function automatic logic [31:0] float_tag(input logic pass, input logic [31:0] x,
                                            input logic [31:0] y);
    float_tag = tag_of(32'(pass), is_nan(x) | is_nan(y), is_infinite(x), x >> 31,
                       mmu_arithmetic_pkg::exponent_of(x), is_infinite(y), y >> 31,
                       mmu_arithmetic_pkg::exponent_of(y));
  endfunction

  // A multiplication of binary32 numbers x and y, or, with pass, x alone: the significand of x by
  // six bits of that of y, as part 0 to 3, then the product, then the result.
  //   scale tag  {17'b0, pass, nan, infinite, zero, sign, exponent[9:0]}
  function automatic logic [31:0] scale_tag(input logic pass, input logic [31:0] x,
                                            input logic [31:0] y);
    logic [31:0] zero, infinite;
    zero = ((((x >> 23) & 32'hFF) == 32'd0) || (((y >> 23) & 32'hFF) == 32'd0)) ? 32'd1 : 32'd0;
    infinite = is_infinite(x) | is_infinite(y);
    scale_tag = (32'(pass) << 14) | ((is_nan(x) | is_nan(y) | (zero & infinite)) << 13) |
                (infinite << 12) | (zero << 11) | (((x ^ y) >> 31) << 10) |
                (((x >> 23) & 32'hFF) + ((y >> 23) & 32'hFF) +
                 (mmu_arithmetic_pkg::EXPONENT_OFFSET - 32'd126));
  endfunction
  function automatic logic [31:0] scale_part(input logic pass, input logic [31:0] x,
                                             input logic [5:0] digit, input logic is_first);
    scale_part = pass ? (is_first ? x : 32'd0)
                      : ((x & 32'h007F_FFFF) | 32'h0080_0000) * 32'(digit);
  endfunction
  function automatic logic [31:0] scaled_of(input logic [47:0] product, input logic [31:0] tag);
    logic [31:0] magnitude;
    magnitude = mmu_arithmetic_pkg::rounded_product(tag & 32'h3FF, product);
    magnitude = (((tag >> 11) & 32'd1) != 32'd0) ? 32'd0 : magnitude;
    magnitude = (((tag >> 12) & 32'd1) != 32'd0) ? mmu_arithmetic_pkg::INFINITY : magnitude;
    scaled_of = (((tag >> 10) & 32'd1) << 31) | magnitude;
    scaled_of = (((tag >> 13) & 32'd1) != 32'd0) ? mmu_arithmetic_pkg::CANONICAL_NAN : scaled_of;
    scaled_of = (((tag >> 14) & 32'd1) != 32'd0) ? product[31:0] : scaled_of;
  endfunction

  // A PE's product, made before the sum arrives.
  function automatic logic [31:0] product_of(input logic is_float, input logic [15:0] act,
                                             input logic [15:0] weight, input logic enabled);
    logic [31:0] exponent_a, exponent_w, sign, zero, infinite, nan, exponent, significand;
    logic [31:0] low, high;
    exponent_a = (32'(act) >> 7) & 32'hFF;
    exponent_w = (32'(weight) >> 7) & 32'hFF;
    zero = ((exponent_a == 32'd0) || (exponent_w == 32'd0)) ? 32'd1 : 32'd0;
    infinite = ((exponent_a == 32'd255) || (exponent_w == 32'd255)) ? 32'd1 : 32'd0;
    nan = (((32'(act) & 32'h7FFF) > 32'h7F80) || ((32'(weight) & 32'h7FFF) > 32'h7F80) ||
           ((infinite != 32'd0) && (zero != 32'd0))) ? 32'd1 : 32'd0;
    sign = 32'(act[15]) ^ 32'(weight[15]);
    exponent = (zero != 32'd0) ? 32'd0
        : exponent_a + exponent_w + (mmu_arithmetic_pkg::EXPONENT_OFFSET - 32'd126);
    significand = ((32'(act) & 32'h7F) | 32'h80) * ((32'(weight) & 32'h7F) | 32'h80);
    significand = (zero != 32'd0) ? 32'd0 : significand;
    low = 32'($signed(act[7:0])) * 32'(weight[3:0]);
    high = 32'($signed(act[7:0])) * 32'($signed(weight[7:4]));
    product_of = is_float
        ? (nan << 28) | (infinite << 27) | (sign << 26) | (exponent << 16) | significand
        : ((high & 32'hFFF) << 12) | (low & 32'hFFF);
    product_of = product_of | (32'(enabled) << 29);
  endfunction

  // The addition of a product and a sum. That of int8 adds the low nibble's part, then the high
  // one's. A disabled weight's passes the sum on.
  function automatic logic [31:0] pe_big(input logic is_float, input logic [31:0] product,
                                         input logic [31:0] psum);
    logic [31:0] swap;
    swap = mmu_arithmetic_pkg::swap_of((product >> 16) & 32'h3FF,
                                       mmu_arithmetic_pkg::exponent_of(psum));
    pe_big = (is_float && (((product >> 29) & 32'd1) != 32'd0))
        ? mmu_arithmetic_pkg::choose(swap, (product & 32'hFFFF) << 14,
                                     mmu_arithmetic_pkg::magnitude_of(psum))
        : psum;
  endfunction
  function automatic logic [31:0] pe_little(input logic is_float, input logic [31:0] product,
                                            input logic [31:0] psum);
    pe_little = is_float
        ? mmu_arithmetic_pkg::aligned((product >> 16) & 32'h3FF, (product & 32'hFFFF) << 14,
                                      mmu_arithmetic_pkg::exponent_of(psum),
                                      mmu_arithmetic_pkg::magnitude_of(psum))
        : (((product >> 29) & 32'd1) != 32'd0) ? product : 32'd0;
  endfunction
  function automatic logic [31:0] pe_tag(input logic is_float, input logic [31:0] product,
                                         input logic [31:0] psum);
    pe_tag = is_float
        ? tag_of(((product >> 29) & 32'd1) ^ 32'd1, ((product >> 28) & 32'd1) | is_nan(psum),
                 (product >> 27) & 32'd1, (product >> 26) & 32'd1, (product >> 16) & 32'h3FF,
                 is_infinite(psum), psum >> 31, mmu_arithmetic_pkg::exponent_of(psum))
        : 32'd0;
  endfunction
  function automatic logic [31:0] pe_sum(input logic is_float, input logic [31:0] big,
                                         input logic [31:0] little, input logic [31:0] tag);
    pe_sum = is_float ? sum_of(big, little, tag) : big + 32'($signed(little[11:0]));
  endfunction
  function automatic logic [31:0] pe_sum_tag(input logic is_float, input logic [31:0] big,
                                             input logic [31:0] little, input logic [31:0] tag);
    pe_sum_tag = is_float ? sum_tag_of(big, little, tag) : 32'($signed(little[23:12])) << 4;
  endfunction
  function automatic logic [31:0] pe_result(input logic is_float, input logic [31:0] sum,
                                            input logic [31:0] tag);
    pe_result = is_float ? result_of(sum, tag) : sum + tag;
  endfunction
endpackage
