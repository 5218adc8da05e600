// A weight-stationary systolic array: y = x w, x of rows_i rows and Size columns, w of Size x Size,
// numbers of 8 bits with sign, sums of 32. Read README.md in this folder.
// SPDX-License-Identifier: Apache-2.0

// One cell. It stores a weight. In each cycle it multiplies the weight by the x from the left and
// adds the sum from above. One cycle later it passes x to the right and the sum down.
module lab_pe (
    input logic clk_i,
    input logic load_i,  // keep w_i from the next cycle on
    input logic signed [7:0] w_i,
    input logic signed [7:0] x_i,
    input logic signed [31:0] sum_i,
    output logic signed [7:0] x_o,
    output logic signed [31:0] sum_o
);
  // Yours: three registers.
  assign x_o = '0;
  assign sum_o = '0;
endmodule

module lab_array #(
    parameter int Size = 4
) (
    input logic clk_i,
    input logic rst_i,  // high before the first cycle
    input logic [15:0] rows_i,  // first dimension of x, 1 or more
    // memory of w: the row asked for in a cycle is there in the next one
    output logic w_read_o,
    output logic [15:0] w_row_o,
    input logic [Size-1:0][7:0] w_i,
    // memory of x, the same
    output logic x_read_o,
    output logic [15:0] x_row_o,
    input logic [Size-1:0][7:0] x_i,
    // column c shows y[0][c], y[1][c], ... one after the other, each in a cycle with y_valid_o[c]
    output logic [Size-1:0] y_valid_o,
    output logic [Size-1:0][31:0] y_o
);
  // The number of this cycle.
  logic [31:0] cycle_q;
  always_ff @(posedge clk_i) cycle_q <= rst_i ? '0 : cycle_q + 1;

  // The cells: x enters cell (r, c) from the left on lane[r][c], and its sum from above on
  // sum[r][c]. lane[r][Size] and sum[Size][c] leave the array.
  logic signed [7:0] lane[Size][Size+1];
  logic signed [31:0] sum[Size+1][Size];
  for (genvar r = 0; r < Size; r++) begin : gen_rows
    for (genvar c = 0; c < Size; c++) begin : gen_columns
      lab_pe u_pe (
          .clk_i,
          .load_i(1'b0),  // yours: the cycle in which row r of w passes
          .w_i(w_i[c]),
          .x_i(lane[r][c]),
          .sum_i(sum[r][c]),
          .x_o(lane[r][c+1]),
          .sum_o(sum[r+1][c])
      );
    end
    // Yours: the skew. x_i[r] must enter row r some cycles later than x_i[0] enters row 0.
    assign lane[r][0] = x_i[r];
  end
  for (genvar c = 0; c < Size; c++) begin : gen_edges
    assign sum[0][c] = '0;
    assign y_o[c] = sum[Size][c];
    // Yours: the cycles in which the foot of column c has a y.
    assign y_valid_o[c] = 1'b0;
  end

  // Yours: the row of w and the row of x to request in this cycle.
  assign w_read_o = 1'b0;
  assign w_row_o = '0;
  assign x_read_o = 1'b0;
  assign x_row_o = '0;
endmodule
