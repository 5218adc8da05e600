// One processing element of the weight-stationary array: psum_o follows psum_i + act * weight by
// Latency cycles. A disabled weight passes psum_i on. With a latency of 1, act_i and swap_i come a
// cycle before their sum. With one of 2 or 3 they come two cycles before it, and the product is
// made in a stage of its own.
// A new weight travels down the column (weight_i to weight_o, a cycle per row). The capture token
// copies it into the shadow register, the swap token the shadow register into the active one.
// Activations and both tokens travel to the right, a cycle per column.
// SPDX-License-Identifier: Apache-2.0
module mmu_pe #(
    parameter int unsigned PeKind = 0,  // 0: bf16, 1: int8
    parameter int unsigned ElementBits = 16,
    parameter int unsigned Latency = 1  // 1 to 3
) (
    input logic clk_i,
    input logic enable_i,
    input logic moving_i,
    input logic [ElementBits-1:0] act_i,
    input logic swap_i,
    input logic capture_i,
    input logic [ElementBits:0] weight_i,  // {enable, value}
    input logic [31:0] psum_i,
    output logic [ElementBits-1:0] act_o,
    output logic swap_o,
    output logic capture_o,
    output logic [ElementBits:0] weight_o,
    output logic [31:0] psum_o
);
  logic [ElementBits-1:0] act_q;
  logic swap_q;
  logic capture_q;
  logic [ElementBits:0] weight_q;
  logic [ElementBits:0] shadow_q;
  logic [ElementBits:0] active_q;
  logic [31:0] psum_q;
  logic [31:0] psum_d;

  if (Latency == 1) begin : gen_one_stage
    logic [31:0] sum;
    if (PeKind == 0) begin : gen_bf16
      assign sum = mmu_arithmetic_pkg::multiply_add(16'(act_q), 16'(active_q[ElementBits-1:0]),
                                                    psum_i);
    end else begin : gen_int8
      assign sum = mmu_arithmetic_pkg::multiply_add_int8(act_q[7:0], active_q[7:0], psum_i);
    end
    assign psum_d = active_q[ElementBits] ? sum : psum_i;
  end else begin : gen_stages
    logic [31:0] product_q, sum_q, sum_tag_q;
    logic [31:0] big, little, tag;  // of the sum that has just come ...
    logic [31:0] big_now, little_now, tag_now;  // ... and of the one that is added now
    assign big = mmu_stages_pkg::pe_big(PeKind == 0, product_q, psum_i);
    assign little = mmu_stages_pkg::pe_little(PeKind == 0, product_q, psum_i);
    assign tag = mmu_stages_pkg::pe_tag(PeKind == 0, product_q, psum_i);
    if (Latency == 2) begin : gen_two
      assign {big_now, little_now, tag_now} = {big, little, tag};
    end else begin : gen_three
      logic [31:0] big_q, little_q, tag_q;
      always_ff @(posedge clk_i) begin
        if (enable_i) begin
          big_q <= big;
          little_q <= little;
          tag_q <= tag;
        end
      end
      assign {big_now, little_now, tag_now} = {big_q, little_q, tag_q};
    end
    always_ff @(posedge clk_i) begin
      if (enable_i) begin
        product_q <= mmu_stages_pkg::product_of(PeKind == 0, 16'(act_q),
                                                16'(active_q[ElementBits-1:0]),
                                                active_q[ElementBits]);
        sum_q <= mmu_stages_pkg::pe_sum(PeKind == 0, big_now, little_now, tag_now);
        sum_tag_q <= mmu_stages_pkg::pe_sum_tag(PeKind == 0, big_now, little_now, tag_now);
      end
    end
    assign psum_d = mmu_stages_pkg::pe_result(PeKind == 0, sum_q, sum_tag_q);
  end

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      act_q <= act_i;
      swap_q <= swap_i;
      psum_q <= psum_d;
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
  assign capture_o = capture_q;
  assign weight_o = weight_q;
  assign psum_o = psum_q;
endmodule
