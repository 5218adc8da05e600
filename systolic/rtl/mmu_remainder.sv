// value_i modulo the constant Modulus, combinational. For a power of two its low bits. For another
// number the remainder from a product with the reciprocal, exact for Bits + $clog2(Modulus) <= 26.
// SPDX-License-Identifier: Apache-2.0
module mmu_remainder #(
    parameter int unsigned Modulus = 4,
    parameter int unsigned Bits = 17
) (
    input logic [Bits-1:0] value_i,
    output logic [$clog2(Modulus)-1:0] remainder_o
);
  localparam int unsigned RemainderBits = $clog2(Modulus);

  if ((Modulus & (Modulus - 1)) == 0) begin : gen_mask
    // Bits above the remainder are not read.
    logic unused;
    assign unused = ^value_i;
    assign remainder_o = value_i[RemainderBits-1:0];
  end else begin : gen_reciprocal
    // Rounded up by less than one, it makes the quotient too large by less than 2^-RemainderBits.
    localparam logic [47:0] RECIPROCAL = ((48'd1 << 26) + 48'(Modulus) - 48'd1) / 48'(Modulus);
    logic [47:0] product;
    logic [RemainderBits-1:0] quotient;  // its low bits give the remainder's
    assign product = 48'(value_i) * RECIPROCAL;
    assign quotient = RemainderBits'(product >> 26);
    assign remainder_o = RemainderBits'(value_i) - quotient * RemainderBits'(Modulus);
  end
endmodule
