// Between transposer and array: row r's activations and swaps, r * Step cycles later. With them a
// row is as far behind the one above it as the sums are.
// SPDX-License-Identifier: Apache-2.0
module mmu_skew #(
    parameter int unsigned Rows = 4,
    parameter int unsigned ElementBits = 16,
    parameter int unsigned Step = 1
) (
    // verilator lint_off UNUSEDSIGNAL
    // With a step of 0 all is wires.
    input logic clk_i,
    input logic enable_i,
    // verilator lint_on UNUSEDSIGNAL
    input logic [Rows*ElementBits-1:0] act_i,
    input logic [Rows-1:0] swap_i,
    output logic [Rows*ElementBits-1:0] act_o,
    output logic [Rows-1:0] swap_o
);
  localparam int unsigned Bits = ElementBits + 1;

  for (genvar r = 0; r < Rows; r++) begin : gen_row
    if (r * Step == 0) begin : gen_wire
      assign act_o[r*ElementBits+:ElementBits] = act_i[r*ElementBits+:ElementBits];
      assign swap_o[r] = swap_i[r];
    end else begin : gen_line
      logic [r*Step*Bits-1:0] line_q;  // the oldest ones on top
      always_ff @(posedge clk_i) begin
        if (enable_i) begin
          line_q <= (r * Step * Bits)'({line_q, swap_i[r], act_i[r*ElementBits+:ElementBits]});
        end
      end
      assign {swap_o[r], act_o[r*ElementBits+:ElementBits]} = line_q[(r*Step-1)*Bits+:Bits];
    end
  end
endmodule
