// One processing element of an array with both dataflows, of latency 1. In a slot of a
// weight-stationary matmul it is mmu_pe: psum_o follows psum_i + act * active weight. In a slot of
// an output-stationary one it adds act * passing weight to its own sum, and psum_i moves on.
// sum_i, a cycle before the slot's operands, is {drain, last, first, stay}:
//   stay   the slot's product belongs to the PE's own sum
//   first  the own sum starts from +0
//   last   the own sum is complete with this slot and is copied into the hold register
//   drain  the hold register takes the place of psum_i. Independent of the other three
// SPDX-License-Identifier: Apache-2.0
module mmu_pe_dual #(
    parameter int unsigned PeKind = 0,  // 0: bf16, 1: int8
    parameter int unsigned ElementBits = 16
) (
    input logic clk_i,
    input logic enable_i,
    input logic moving_i,
    input logic [ElementBits-1:0] act_i,
    input logic swap_i,
    input logic [3:0] sum_i,
    input logic capture_i,
    input logic [ElementBits:0] weight_i,  // {enable, value}
    input logic [31:0] psum_i,
    output logic [ElementBits-1:0] act_o,
    output logic swap_o,
    output logic [3:0] sum_o,
    output logic capture_o,
    output logic [ElementBits:0] weight_o,
    output logic [31:0] psum_o
);
  logic [ElementBits-1:0] act_q;
  logic swap_q, capture_q;
  logic [3:0] sum_q;
  logic [ElementBits:0] weight_q, shadow_q, active_q;
  logic [31:0] psum_q, own_q, hold_q;

  logic drain, last, first, stay;
  assign {drain, last, first, stay} = sum_q;

  // The one multiply-add of both dataflows.
  logic [ElementBits:0] weight;
  logic [31:0] addend, product_sum, sum;
  assign weight = stay ? weight_q : active_q;
  assign addend = !stay ? psum_i : first ? 32'd0 : own_q;
  if (PeKind == 0) begin : gen_bf16
    assign product_sum = mmu_arithmetic_pkg::multiply_add(16'(act_q),
                                                          16'(weight[ElementBits-1:0]), addend);
  end else begin : gen_int8
    assign product_sum = mmu_arithmetic_pkg::multiply_add_int8(act_q[7:0], weight[7:0], addend);
  end
  assign sum = weight[ElementBits] ? product_sum : addend;

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      act_q <= act_i;
      swap_q <= swap_i;
      sum_q <= sum_i;
      psum_q <= drain ? hold_q : stay ? psum_i : sum;
      if (stay) own_q <= sum;
      if (last) hold_q <= sum;
      if (swap_i) active_q <= shadow_q;
    end
    if (moving_i) begin
      capture_q <= capture_i;
      weight_q <= weight_i;
      if (capture_i) shadow_q <= weight_i;
    end
  end

  assign act_o = act_q;
  assign swap_o = swap_q;
  assign sum_o = sum_q;
  assign capture_o = capture_q;
  assign weight_o = weight_q;
  assign psum_o = psum_q;
endmodule
