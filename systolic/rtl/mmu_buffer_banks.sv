// The unified buffer as hardware has it: a memory and an address unit (mmu_lane) per lane. Same
// ports and same cycles as mmu_buffer, which describes them.
// SPDX-License-Identifier: Apache-2.0
module mmu_buffer_banks #(
    parameter int unsigned Rows = 4,
    parameter int unsigned BufferRows = 64,
    parameter int unsigned ElementBits = 16
) (
    input logic clk_i,
    input logic enable_i,  // some lane has a position
    // Writes of the load unit. A read of the same row gives the old value.
    input logic write_i,
    input logic [$clog2(BufferRows)-1:0] write_row_i,
    input logic [Rows*ElementBits-1:0] write_data_i,
    // SetTaps, or the Matmul of slot 0 when it leaves. Head of the compute queue.
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    input logic set_i,
    input logic start_i,
    input logic [$clog2(Rows)-1:0] start_lane_i,  // of its first value
    input logic restart_i,  // the slot of a transposed stream's next value at lane 0 leaves
    // The position of the slot that left in the last cycle.
    input logic enters_i,
    input logic [$clog2(Rows)-1:0] entry_i,  // its lane
    input logic [15:0] y_i,
    input logic [15:0] x_i,
    input logic [$clog2(BufferRows)-1:0] address_i,
    input logic [15:0] in_height_i,
    input logic [15:0] in_width_i,
    output logic [Rows*ElementBits-1:0] data_o
);
  mmu_pkg::set_taps_t set_taps;
  mmu_pkg::matmul_t matmul;
  assign set_taps = word_i;
  assign matmul = word_i;
  localparam int unsigned AddressBits = $clog2(BufferRows);
  localparam int unsigned LaneBits = $clog2(Rows);
  // The last channel in a group of Rows, no power of two, is counted. Others show under a mask.
  localparam bit COUNTS = (Rows & (Rows - 1)) != 0;
  logic [LaneBits-1:0] start_in_group;
  mmu_remainder #(
      .Modulus(Rows),
      .Bits(16)
  ) u_in_group (
      .value_i(matmul.channel),
      .remainder_o(start_in_group)
  );

  logic [15:0] channels_q, kernel_width_q, group_mask_q, step_dy_q, step_dx_q, restart_dx_q;
  logic whole_q;  // a group is Rows, no power of two
  logic [AddressBits-1:0] jump_x_q, jump_y_q;
  always_ff @(posedge clk_i) begin
    if (set_i) begin
      channels_q <= set_taps.channels;
      kernel_width_q <= set_taps.kernel_width;
      group_mask_q <= ~(16'hFFFF << set_taps.log2_group);
      whole_q <= COUNTS && (set_taps.log2_group == 4'(LaneBits));
      step_dy_q <= set_taps.step_dy;
      step_dx_q <= set_taps.step_dx;
      restart_dx_q <= set_taps.restart_dx;
      jump_x_q <= set_taps.jump_x[AddressBits-1:0];
      jump_y_q <= set_taps.jump_y[AddressBits-1:0];
    end
  end

  for (genvar r = 0; r < Rows; r++) begin : gen_lane
    localparam int unsigned BEFORE = (r == 0) ? Rows - 1 : r - 1;
    logic first;
    logic [15:0] y, x, dy, dx, channel, kernel_x;
    logic [AddressBits-1:0] address, offset;
    logic [LaneBits-1:0] in_group;
    logic in_input, in_input_q;
    logic [AddressBits-1:0] row;
    logic [ElementBits-1:0] element;
    mmu_lane #(
        .Rows(Rows),
        .AddressBits(AddressBits)
    ) u_lane (
        .clk_i,
        .enable_i,
        .channels_i(channels_q),
        .kernel_width_i(kernel_width_q),
        .group_mask_i(group_mask_q),
        .whole_i(whole_q),
        .step_dy_i(step_dy_q),
        .step_dx_i(step_dx_q),
        .restart_dx_i(restart_dx_q),
        .jump_x_i(jump_x_q),
        .jump_y_i(jump_y_q),
        .in_height_i,
        .in_width_i,
        .enters_i(enters_i && (entry_i == LaneBits'(r))),
        .y_i,
        .x_i,
        .address_i,
        .start_i(start_i && (start_lane_i == LaneBits'(r))),
        .dy_i(matmul.dy),
        .dx_i(matmul.dx),
        .offset_i(matmul.offset[AddressBits-1:0]),
        .channel_i(matmul.channel),
        .kernel_x_i(matmul.kernel_x),
        .in_group_i(start_in_group),
        // The last lane's tap moves to lane 0 while a transposed stream has values left.
        .before_first_i((r == 0) ? restart_i : gen_lane[BEFORE].first),
        .before_y_i(gen_lane[BEFORE].y),
        .before_x_i(gen_lane[BEFORE].x),
        .before_address_i(gen_lane[BEFORE].address),
        .before_dy_i(gen_lane[BEFORE].dy),
        .before_dx_i(gen_lane[BEFORE].dx),
        .before_offset_i(gen_lane[BEFORE].offset),
        .before_channel_i(gen_lane[BEFORE].channel),
        .before_kernel_x_i(gen_lane[BEFORE].kernel_x),
        .before_in_group_i(gen_lane[BEFORE].in_group),
        .first_o(first),
        .y_o(y),
        .x_o(x),
        .address_o(address),
        .dy_o(dy),
        .dx_o(dx),
        .offset_o(offset),
        .channel_o(channel),
        .kernel_x_o(kernel_x),
        .in_group_o(in_group),
        .in_input_o(in_input),
        .row_o(row)
    );
    mmu_sram_1r1w #(
        .Words(BufferRows),
        .Bits(ElementBits)
    ) u_bank (
        .clk_i,
        .write_i,
        .write_row_i,
        .write_data_i(write_data_i[r*ElementBits+:ElementBits]),
        .read_i(enable_i),
        .read_row_i(row),
        .read_data_o(element)
    );
    always_ff @(posedge clk_i) if (enable_i) in_input_q <= in_input;
    assign data_o[r*ElementBits+:ElementBits] = in_input_q ? element : ElementBits'(0);
  end
endmodule
