// A weight-stationary systolic array: y = x w, x of rows_i rows and Size columns, w of Size x Size,
// numbers of 8 bits with sign, sums of 32. Read README.md beside this file.
// SPDX-License-Identifier: Apache-2.0

// One cell. It keeps a weight; in each cycle it multiplies it by the x that comes from the left,
// adds the sum that comes from above, and passes x to the right and the sum down, one cycle later.
module lab_pe (
    input logic clk_i,
    input logic load_i,  // keep w_i from the next cycle on
    input logic signed [7:0] w_i,
    input logic signed [7:0] x_i,
    input logic signed [31:0] sum_i,
    output logic signed [7:0] x_o,
    output logic signed [31:0] sum_o
);
  logic signed [7:0] w_q;
  always_ff @(posedge clk_i) begin
    if (load_i) w_q <= w_i;
    x_o <= x_i;
    sum_o <= sum_i + 32'(x_i) * 32'(w_q);
  end
endmodule

module lab_array #(
    parameter int Size = 4
) (
    input logic clk_i,
    input logic rst_i,  // high before the first cycle
    input logic [15:0] rows_i,  // of x; 1 or more
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

  // The cells: lane[r][c] is the x that enters cell (r, c) from the left, sum[r][c] the sum that
  // enters it from above; lane[r][Size] and sum[Size][c] leave the array.
  logic signed [7:0] lane[Size][Size+1];
  logic signed [31:0] sum[Size+1][Size];
  for (genvar r = 0; r < Size; r++) begin : gen_rows
    for (genvar c = 0; c < Size; c++) begin : gen_columns
      lab_pe u_pe (
          .clk_i,
          .load_i(cycle_q == 1 + r),
          .w_i(w_i[c]),
          .x_i(lane[r][c]),
          .sum_i(sum[r][c]),
          .x_o(lane[r][c+1]),
          .sum_o(sum[r+1][c])
      );
    end
    // The skew: r registers before row r.
    logic signed [7:0] late[r+1];
    assign late[0] = x_i[r];
    for (genvar i = 0; i < r; i++) begin : gen_late
      always_ff @(posedge clk_i) late[i+1] <= late[i];
    end
    assign lane[r][0] = late[r];
  end
  for (genvar c = 0; c < Size; c++) begin : gen_edges
    assign sum[0][c] = '0;
    assign y_o[c] = sum[Size][c];
    localparam int FIRST_Y = FIRST_X + 1 + Size + c;
    assign y_valid_o[c] = cycle_q >= FIRST_Y && cycle_q < FIRST_Y + 32'(rows_i);
  end

  // Row 0 of x enters the array a cycle after row 0 of w has come, and the rest of w comes in front
  // of the wave.
  localparam int FIRST_X = 1;
  assign w_read_o = !rst_i && cycle_q < Size;
  assign w_row_o = 16'(cycle_q);
  assign x_read_o = !rst_i && cycle_q >= FIRST_X && cycle_q < FIRST_X + 32'(rows_i);
  assign x_row_o = 16'(cycle_q - FIRST_X);
endmodule
