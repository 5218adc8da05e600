// The walk of a store over positions: the address (bytes of DRAM, accumulator rows) moves by step_x
// along a row, by wrap_y to the next row, by wrap_n to the next image.
// SPDX-License-Identifier: Apache-2.0
module mmu_walk #(
    parameter int unsigned Bits = 32
) (
    input logic clk_i,
    input logic start_i,  // at this place, with so much left of row and image
    input logic [Bits-1:0] first_i,
    input logic [15:0] rows_left_i,
    input logic [15:0] columns_left_i,
    input logic next_i,
    input logic [15:0] out_height_i,
    input logic [15:0] out_width_i,
    input logic [Bits-1:0] step_x_i,
    input logic [Bits-1:0] wrap_y_i,
    input logic [Bits-1:0] wrap_n_i,
    output logic [Bits-1:0] place_o
);
  logic [15:0] rows_left_q, columns_left_q;
  logic [Bits-1:0] place_q;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      rows_left_q <= rows_left_i;
      columns_left_q <= columns_left_i;
      place_q <= first_i;
    end else if (next_i) begin
      if (columns_left_q > 16'd1) begin
        columns_left_q <= columns_left_q - 16'd1;
        place_q <= place_q + step_x_i;
      end else begin
        columns_left_q <= out_width_i;
        rows_left_q <= (rows_left_q > 16'd1) ? rows_left_q - 16'd1 : out_height_i;
        place_q <= place_q + ((rows_left_q > 16'd1) ? wrap_y_i : wrap_n_i);
      end
    end
  end

  assign place_o = place_q;
endmodule
