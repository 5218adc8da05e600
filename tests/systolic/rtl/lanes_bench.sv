// Stream walker and unified buffer, wired as in mmu_datapath.
// SPDX-License-Identifier: Apache-2.0
module lanes_bench (
    input logic clk_i,
    input logic enable_i,
    input logic write_i,
    input logic [5:0] write_row_i,
    input logic [63:0] write_data_i,
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    input logic set_stream_i,
    input logic set_taps_i,
    input logic start_i,
    input logic [1:0] start_lane_i,
    input logic step_i,
    input logic restart_i,
    input logic enters_i,
    input logic [1:0] entry_i,
    output logic [63:0] data_o
);
  logic [15:0] y, x, in_height, in_width;
  logic [5:0] address;
  mmu_stream #(.AddressBits(6)) u_stream (
      .clk_i, .word_i, .set_i(set_stream_i), .start_i, .step_i,
      .y_o(y), .x_o(x), .address_o(address), .in_height_o(in_height), .in_width_o(in_width));
  mmu_buffer #(.Rows(4), .BufferRows(64), .ElementBits(16)) u_buffer (
      .clk_i, .enable_i, .write_i, .write_row_i, .write_data_i, .word_i, .set_i(set_taps_i),
      .start_i, .start_lane_i, .restart_i, .enters_i, .entry_i, .y_i(y), .x_i(x),
      .address_i(address), .in_height_i(in_height), .in_width_i(in_width), .data_o);
endmodule
