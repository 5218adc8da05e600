// One column of mmu_output_stages: a value of the accumulators moves on by a stage per step. The
// last stage, which selects, rectifies and narrows value_o, is around the columns.
//   stages   bf16                                        int8
//   1 - 3    x * multiplier: partial products by 6 bits  bias; partial products by 8 bits;
//            of it; product; rounded                     product
//   4 - 6    + bias: aligned; added; rounded             shifted but for the last place; cut to 34
//                                                        bits. That place, rounded, cut to 32 bits
//   7        the largest of a pool                       the same
//   8 - 10 + operand: aligned; added. Rounded operand added and cut; waits; waits
// SPDX-License-Identifier: Apache-2.0
module mmu_output_column #(
    parameter int unsigned PeKind = 0  // 0: bf16, 1: int8
) (
    input logic clk_i,
    // LoadRegisters.
    input logic write_i,
    input logic [1:0] file_i,  // 0: bias, 1: multiplier, 2: shift
    input logic [31:0] register_i,
    // All stages advance, then the flags of the Store.
    input logic step_i,
    input logic scale_i,
    input logic bias_i,
    input logic pool_i,
    input logic residual_i,
    input logic [31:0] data_i,     // before stage 1
    input logic [31:0] operand_i,  // as an accumulator
    input logic selected_i,
    input logic pool_first_i,  // the output of stage 6 is the first of its position
    output logic [31:0] value_o,  // after stage 10
    output logic selected_o
);
  logic [31:0] bias_q, multiplier_q;
  always_ff @(posedge clk_i) begin
    if (write_i && (file_i == 2'd0)) bias_q <= register_i;
    if (write_i && (file_i == 2'd1)) multiplier_q <= register_i;
  end

  // The operand waits for stage 8, its bit for the end.
  logic [7*32-1:0] operand_q;
  logic [9:0] selected_q;
  logic [31:0] operand;
  assign operand = operand_q[6*32+:32];
  assign selected_o = selected_q[9];
  always_ff @(posedge clk_i) begin
    if (step_i) begin
      operand_q <= {operand_q[6*32-1:0], operand_i};
      selected_q <= {selected_q[8:0], selected_i};
    end
  end

  // A repeated row, while the next one waits for its operand, changes no pool.
  logic [31:0] before_pool, value_q, result_q;
  always_ff @(posedge clk_i) begin
    if (step_i && (!pool_i || pool_first_i ||
                   mmu_arithmetic_pkg::greater(before_pool, value_q, PeKind == 0))) begin
      value_q <= before_pool;
    end
  end
  assign value_o = result_q;

  if (PeKind == 0) begin : gen_bf16
    logic [31:0] part_q[4];
    logic [31:0] scale_tag_q, product_tag_q, scaled_q, biased_q;
    logic [47:0] product_q;
    logic [31:0] bias_big_q, bias_little_q, bias_tag_q, bias_sum_q, bias_sum_tag_q;
    logic [31:0] big_q, little_q, tag_q, sum_q, sum_tag_q;
    always_ff @(posedge clk_i) begin
      if (step_i) begin
        part_q[0] <= mmu_stages_pkg::scale_part(!scale_i, data_i, multiplier_q[5:0], 1'b1);
        part_q[1] <= mmu_stages_pkg::scale_part(!scale_i, data_i, multiplier_q[11:6], 1'b0);
        part_q[2] <= mmu_stages_pkg::scale_part(!scale_i, data_i, multiplier_q[17:12], 1'b0);
        part_q[3] <= mmu_stages_pkg::scale_part(!scale_i, data_i, {1'b1, multiplier_q[22:18]},
                                                1'b0);
        scale_tag_q <= mmu_stages_pkg::scale_tag(!scale_i, data_i, multiplier_q);
        product_q <= 48'(part_q[0]) + (48'(part_q[1]) << 6) + (48'(part_q[2]) << 12) +
                     (48'(part_q[3]) << 18);
        product_tag_q <= scale_tag_q;
        scaled_q <= mmu_stages_pkg::scaled_of(product_q, product_tag_q);

        bias_big_q <= mmu_stages_pkg::float_big(!bias_i, scaled_q, bias_q);
        bias_little_q <= mmu_stages_pkg::float_little(scaled_q, bias_q);
        bias_tag_q <= mmu_stages_pkg::float_tag(!bias_i, scaled_q, bias_q);
        bias_sum_q <= mmu_stages_pkg::sum_of(bias_big_q, bias_little_q, bias_tag_q);
        bias_sum_tag_q <= mmu_stages_pkg::sum_tag_of(bias_big_q, bias_little_q, bias_tag_q);
        biased_q <= mmu_stages_pkg::result_of(bias_sum_q, bias_sum_tag_q);

        big_q <= mmu_stages_pkg::float_big(!residual_i, value_q, operand);
        little_q <= mmu_stages_pkg::float_little(value_q, operand);
        tag_q <= mmu_stages_pkg::float_tag(!residual_i, value_q, operand);
        sum_q <= mmu_stages_pkg::sum_of(big_q, little_q, tag_q);
        sum_tag_q <= mmu_stages_pkg::sum_tag_of(big_q, little_q, tag_q);
        result_q <= mmu_stages_pkg::result_of(sum_q, sum_tag_q);
      end
    end
    assign before_pool = biased_q;
  end else begin : gen_int8
    logic [5:0] shift_q;  // less one
    logic [31:0] biased_q, cut_q, sum_q, waits_q;
    logic [39:0] part_q[4];
    logic [63:0] product_q, doubled_q;
    logic [33:0] twice_q;
    logic [33:0] rounded;
    assign rounded = {twice_q[33], twice_q[33:1]} + 34'(twice_q[0]);
    always_ff @(posedge clk_i) begin
      if (write_i && (file_i == 2'd2)) shift_q <= mmu_arithmetic_pkg::cut_shift(register_i) - 6'd1;
      if (step_i) begin
        biased_q <= bias_i ? data_i + bias_q : data_i;
        part_q[0] <= scale_i ? 40'($signed(biased_q)) * 40'(multiplier_q[7:0])
                             : 40'($signed(biased_q));
        part_q[1] <= scale_i ? 40'($signed(biased_q)) * 40'(multiplier_q[15:8]) : '0;
        part_q[2] <= scale_i ? 40'($signed(biased_q)) * 40'(multiplier_q[23:16]) : '0;
        part_q[3] <= scale_i ? 40'($signed(biased_q)) * 40'($signed(multiplier_q[31:24])) : '0;
        product_q <= 64'($signed(part_q[0])) + (64'($signed(part_q[1])) << 8) +
                     (64'($signed(part_q[2])) << 16) + (64'($signed(part_q[3])) << 24);
        doubled_q <= scale_i ? 64'($signed(product_q) >>> shift_q) : product_q;
        twice_q <= (doubled_q[63:33] == {31{doubled_q[63]}})
            ? doubled_q[33:0] : {doubled_q[63], {33{!doubled_q[63]}}};
        cut_q <= scale_i ? mmu_arithmetic_pkg::cut_to_32(64'($signed(rounded)))
                         : twice_q[31:0];
        sum_q <= residual_i ? mmu_arithmetic_pkg::add_cut(value_q, operand) : value_q;
        waits_q <= sum_q;
        result_q <= waits_q;
      end
    end
    assign before_pool = cut_q;
  end
endmodule
