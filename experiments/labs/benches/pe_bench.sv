// Test bench for the cell of lab 5: four cells in a column, each fed Latency cycles after the one
// above it, and a log of the outputs of the last one. Before and after its numbers a lane shows
// garbage.
// SPDX-License-Identifier: Apache-2.0
module lab_bench #(
    parameter int Rows = 4,  // of x
    parameter int Latency = 1
) (
    input logic clk_i,
    input logic rst_i,
    output logic done_o
);
  localparam int CELLS = 4;
  localparam int START = 3;  // cycle of the first x. The weights come in cycle 0
  logic [7:0] x_memory[Rows*CELLS];
  logic [7:0] w_memory[CELLS];
  logic [31:0] s_memory[Rows];
  logic [31:0] sum[CELLS+1];
  int cycle_q;
  int file;

  initial begin
    $readmemh("a.x", x_memory);
    $readmemh("a.w", w_memory);
    $readmemh("a.s", s_memory);
    file = $fopen("a.log", "w");
  end
  final $fclose(file);

  for (genvar r = 0; r < CELLS; r++) begin : gen_cells
    logic [7:0] x;
    int m;
    assign m = cycle_q - START - r * Latency;
    assign x = m >= 0 && m < Rows ? x_memory[m*CELLS+r] : 8'h5B;
    lab_pe u_pe (
        .clk_i,
        .load_i(!rst_i && cycle_q == 0),
        .w_i(!rst_i && cycle_q == 0 ? w_memory[r] : 8'hA5),
        .x_i(x),
        .sum_i(sum[r]),
        .sum_o(sum[r+1])
    );
  end

  int first, last;
  assign first = cycle_q - START;
  assign last = cycle_q - START - CELLS * Latency;
  assign sum[0] = first >= 0 && first < Rows ? s_memory[first] : 32'h5A5A_A5A5;
  assign done_o = !rst_i && last >= Rows;

  always_ff @(posedge clk_i) begin
    cycle_q <= rst_i ? 0 : cycle_q + 1;
    if (!rst_i && last >= 0 && last < Rows)
      $fwrite(file, "y %0d %0d %0d\n", cycle_q, last, $signed(sum[CELLS]));
  end
endmodule
