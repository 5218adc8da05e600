// A memory of `Words` words with one write port and one read port on one clock: the one body of all
// memories of the machine. A read is shown in the next cycle, holds until the next read, and gives
// the old value where the same word is written in its cycle. No reset. Synthesis makes block RAM or
// LUT RAM of it. To use a macro, replace this file.
// SPDX-License-Identifier: Apache-2.0
module mmu_sram_1r1w #(
    parameter int unsigned Words = 512,
    parameter int unsigned Bits = 32
) (
    input logic clk_i,
    input logic write_i,
    input logic [((Words > 1) ? $clog2(Words) : 1)-1:0] write_row_i,
    input logic [Bits-1:0] write_data_i,
    input logic read_i,
    input logic [((Words > 1) ? $clog2(Words) : 1)-1:0] read_row_i,
    output logic [Bits-1:0] read_data_o
);
  logic [Bits-1:0] memory_q[Words] /* verilator public_flat_rd */;
  logic [Bits-1:0] read_data_q;

  always_ff @(posedge clk_i) begin
    if (write_i) memory_q[write_row_i] <= write_data_i;
    if (read_i) read_data_q <= memory_q[read_row_i];
  end

  assign read_data_o = read_data_q;
endmodule
