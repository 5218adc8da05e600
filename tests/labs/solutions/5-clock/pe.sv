// A cell of three stages: product; lower half of the sum; upper half with the carry of the lower.
// SPDX-License-Identifier: Apache-2.0
module lab_pe (
    input logic clk_i,
    input logic load_i,  // keep w_i from the next cycle on
    input logic signed [7:0] w_i,
    input logic signed [7:0] x_i,
    input logic signed [31:0] sum_i,
    output logic signed [31:0] sum_o
);
  logic signed [7:0] w_q;
  always_ff @(posedge clk_i) if (load_i) w_q <= w_i;

  logic signed [15:0] product_q;
  logic [31:0] sum_q;
  logic [16:0] low_q;  // with the carry
  logic [15:0] high_q;
  logic sign_q;
  always_ff @(posedge clk_i) begin
    product_q <= x_i * w_q;
    sum_q <= sum_i;
    low_q <= 17'(sum_q[15:0]) + 17'({1'b0, product_q});
    high_q <= sum_q[31:16];
    sign_q <= product_q[15];
    sum_o <= {high_q + {16{sign_q}} + 16'(low_q[16]), low_q[15:0]};
  end
endmodule
