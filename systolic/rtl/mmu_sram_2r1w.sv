// A memory with one write port and two read ports, a and b: two copies of mmu_sram_1r1w with the
// same content. Reads are those of that memory. To use a macro of three ports, replace this file.
// SPDX-License-Identifier: Apache-2.0
module mmu_sram_2r1w #(
    parameter int unsigned Words = 512,
    parameter int unsigned Bits = 32
) (
    input logic clk_i,
    input logic write_i,
    input logic [$clog2(Words)-1:0] write_row_i,
    input logic [Bits-1:0] write_data_i,
    input logic a_read_i,
    input logic [$clog2(Words)-1:0] a_row_i,
    output logic [Bits-1:0] a_data_o,
    input logic b_read_i,
    input logic [$clog2(Words)-1:0] b_row_i,
    output logic [Bits-1:0] b_data_o
);
  mmu_sram_1r1w #(
      .Words(Words),
      .Bits(Bits)
  ) u_a (
      .clk_i,
      .write_i,
      .write_row_i,
      .write_data_i,
      .read_i(a_read_i),
      .read_row_i(a_row_i),
      .read_data_o(a_data_o)
  );
  mmu_sram_1r1w #(
      .Words(Words),
      .Bits(Bits)
  ) u_b (
      .clk_i,
      .write_i,
      .write_row_i,
      .write_data_i,
      .read_i(b_read_i),
      .read_row_i(b_row_i),
      .read_data_o(b_data_o)
  );
endmodule
