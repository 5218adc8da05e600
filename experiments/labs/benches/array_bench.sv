// Test bench for the array of lab 1: memories of x and w that answer in the cycle after a request,
// and a log of each read and each result. A memory that is not asked shows garbage.
// SPDX-License-Identifier: Apache-2.0
module lab_case #(
    parameter int Size = 4,
    parameter int Rows = 4,
    parameter int Most = 1000,  // cycles
    parameter Name = "a"  // of the files: Name.x, Name.w, Name.log
) (
    input logic clk_i,
    input logic rst_i,
    output logic done_o
);
  logic [7:0] x_memory[Rows*Size];
  logic [7:0] w_memory[Size*Size];
  logic w_read, x_read;
  logic [15:0] w_row, x_row;
  logic [Size-1:0][7:0] w_q, x_q;
  logic [Size-1:0] y_valid;
  logic [Size-1:0][31:0] y;
  int cycle_q;
  int delivered_q[Size];
  int file;

  initial begin
    $readmemh({Name, ".x"}, x_memory);
    $readmemh({Name, ".w"}, w_memory);
    file = $fopen({Name, ".log"}, "w");
  end
  final $fclose(file);

  lab_array #(
      .Size(Size)
  ) u_array (
      .clk_i,
      .rst_i,
      .rows_i(16'(Rows)),
      .w_read_o(w_read),
      .w_row_o(w_row),
      .w_i(w_q),
      .x_read_o(x_read),
      .x_row_o(x_row),
      .x_i(x_q),
      .y_valid_o(y_valid),
      .y_o(y)
  );

  always_comb begin
    done_o = 1'b1;
    for (int c = 0; c < Size; c++) if (delivered_q[c] < Rows) done_o = 1'b0;
    if (cycle_q >= Most) done_o = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    for (int i = 0; i < Size; i++) begin
      w_q[i] <= w_read && 32'(w_row) < Size ? w_memory[32'(w_row)*Size+i] : 8'hA5;
      x_q[i] <= x_read && 32'(x_row) < Rows ? x_memory[32'(x_row)*Size+i] : 8'h5B;
    end
    if (rst_i) begin
      cycle_q <= 0;
      for (int c = 0; c < Size; c++) delivered_q[c] <= 0;
    end else if (!done_o) begin
      cycle_q <= cycle_q + 1;
      if (w_read) $fwrite(file, "w %0d %0d 0\n", cycle_q, w_row);
      if (x_read) $fwrite(file, "x %0d %0d 0\n", cycle_q, x_row);
      for (int c = 0; c < Size; c++) begin
        if (y_valid[c]) begin
          delivered_q[c] <= delivered_q[c] + 1;
          $fwrite(file, "y %0d %0d %0d\n", cycle_q, c, $signed(y[c]));
        end
      end
    end
  end
endmodule
