// value_i modulo the constant Modulus, combinational. For a power of two its low bits. For another
// number a table gives the remainder of each digit of four bits, and a tree adds them modulo
// Modulus.
// SPDX-License-Identifier: Apache-2.0
module mmu_remainder #(
    parameter int unsigned Modulus = 4,
    parameter int unsigned Bits = 16
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
  end else begin : gen_digits
    localparam int unsigned Digits = 1 << $clog2((Bits + 3) / 4);
    logic [Digits*4-1:0] value;
    assign value = (Digits * 4)'(value_i);
    // Node i adds nodes 2 i and 2 i + 1. The last `Digits` nodes are the digits.
    for (genvar i = 1; i < 2 * Digits; i++) begin : gen_nodes
      logic [RemainderBits-1:0] node;
      if (i >= Digits) begin : gen_digit
        logic [16*RemainderBits-1:0] remainders;
        for (genvar digit = 0; digit < 16; digit++) begin : gen_remainders
          assign remainders[digit*RemainderBits+:RemainderBits] =
              RemainderBits'((digit * ((32'd1 << (4 * (i - Digits))) % Modulus)) % Modulus);
        end
        assign node = remainders[32'(value[4*(i-Digits)+:4])*RemainderBits+:RemainderBits];
      end else begin : gen_sum
        logic [RemainderBits:0] sum;
        assign sum = {1'b0, gen_nodes[2*i].node} + {1'b0, gen_nodes[2*i+1].node};
        assign node = RemainderBits'((sum >= (RemainderBits + 1)'(Modulus))
                                     ? sum - (RemainderBits + 1)'(Modulus) : sum);
      end
    end
    assign remainder_o = gen_nodes[1].node;
  end

`ifdef FORMAL
  always_comb remainder_is_right : assert (32'(remainder_o) == 32'(value_i) % Modulus);
`endif
endmodule
