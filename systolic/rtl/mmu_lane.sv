// The address unit of one lane, a link of the ring that mmu_buffer makes of them. A position comes
// from the lane before, or enters here. The lane keeps the tap that it got with the first position
// and tells the next lane, with which that one makes the tap after it. Asks the lane's bank for the
// element of this position under this tap.
// SPDX-License-Identifier: Apache-2.0
module mmu_lane #(
    parameter int unsigned Rows = 4,
    parameter int unsigned AddressBits = 13
) (
    input logic clk_i,
    input logic enable_i,  // some lane has a position
    // SetTaps.
    input logic [15:0] channels_i,
    input logic [15:0] kernel_width_i,
    input logic [15:0] group_mask_i,
    input logic whole_i,  // a group is Rows, no power of two
    input logic [15:0] step_dy_i,
    input logic [15:0] step_dx_i,
    input logic [15:0] restart_dx_i,
    input logic [AddressBits-1:0] jump_x_i,
    input logic [AddressBits-1:0] jump_y_i,
    // SetStream.
    input logic [15:0] in_height_i,
    input logic [15:0] in_width_i,
    // A position that enters here.
    input logic enters_i,
    input logic [15:0] y_i,
    input logic [15:0] x_i,
    input logic [AddressBits-1:0] address_i,
    // The tap of a matmul that reads its first value here.
    input logic start_i,
    input logic [15:0] dy_i,
    input logic [15:0] dx_i,
    input logic [AddressBits-1:0] offset_i,
    input logic [15:0] channel_i,
    input logic [15:0] kernel_x_i,
    input logic [$clog2(Rows)-1:0] in_group_i,  // channel modulo Rows
    // The lane before: its position, its tap, and whether they meet for the first time.
    input logic before_first_i,
    input logic [15:0] before_y_i,
    input logic [15:0] before_x_i,
    input logic [AddressBits-1:0] before_address_i,
    input logic [15:0] before_dy_i,
    input logic [15:0] before_dx_i,
    input logic [AddressBits-1:0] before_offset_i,
    input logic [15:0] before_channel_i,
    input logic [15:0] before_kernel_x_i,
    input logic [$clog2(Rows)-1:0] before_in_group_i,
    // To the next lane.
    output logic first_o,
    output logic [15:0] y_o,
    output logic [15:0] x_o,
    output logic [AddressBits-1:0] address_o,
    output logic [15:0] dy_o,
    output logic [15:0] dx_o,
    output logic [AddressBits-1:0] offset_o,
    output logic [15:0] channel_o,
    output logic [15:0] kernel_x_o,
    output logic [$clog2(Rows)-1:0] in_group_o,
    // To the bank.
    output logic in_input_o,  // of the input. Outside of it is zero
    output logic [AddressBits-1:0] row_o
);
  logic first_q;
  logic [15:0] y_q, x_q, dy_q, dx_q, channel_q, kernel_x_q;
  logic [AddressBits-1:0] address_q, offset_q;
  logic [16:0] y, x;
  localparam int unsigned LaneBits = $clog2(Rows);
  localparam bit COUNTS = (Rows & (Rows - 1)) != 0;
  logic [LaneBits-1:0] in_group_q;
  logic ends_group;
  assign ends_group = whole_i ? (before_in_group_i == LaneBits'(Rows - 1))
                              : ((before_channel_i & group_mask_i) == group_mask_i);

  assign y_o = enters_i ? y_i : y_q;
  assign x_o = enters_i ? x_i : x_q;
  assign address_o = enters_i ? address_i : address_q;
  assign y = {y_o[15], y_o} + {dy_q[15], dy_q};
  assign x = {x_o[15], x_o} + {dx_q[15], dx_q};
  assign in_input_o = (y < {1'b0, in_height_i}) && (x < {1'b0, in_width_i});
  assign row_o = address_o + offset_q;

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      y_q <= before_y_i;
      x_q <= before_x_i;
      address_q <= before_address_i;
    end
    lane_asks_outside_the_input : cover (enable_i && first_q && !in_input_o);
    tap_goes_to_the_next_kernel_row : cover (before_first_i && !start_i &&
        (before_channel_i + 16'd1 >= channels_i) && (before_kernel_x_i + 16'd1 >= kernel_width_i));
    if (start_i) first_q <= 1'b1;
    else if (enable_i) first_q <= before_first_i;
    if (start_i) begin
      dy_q <= dy_i;
      dx_q <= dx_i;
      offset_q <= offset_i;
      channel_q <= channel_i;
      kernel_x_q <= kernel_x_i;
    end else if (before_first_i) begin
      dy_q <= before_dy_i;
      dx_q <= before_dx_i;
      offset_q <= before_offset_i;
      channel_q <= '0;
      kernel_x_q <= before_kernel_x_i;
      if (before_channel_i + 16'd1 < channels_i) begin
        if (ends_group) offset_q <= before_offset_i + 1'b1;
        channel_q <= before_channel_i + 16'd1;
      end else if (before_kernel_x_i + 16'd1 < kernel_width_i) begin
        kernel_x_q <= before_kernel_x_i + 16'd1;
        dx_q <= before_dx_i + step_dx_i;
        offset_q <= before_offset_i + jump_x_i;
      end else begin
        kernel_x_q <= '0;
        dx_q <= restart_dx_i;
        dy_q <= before_dy_i + step_dy_i;
        offset_q <= before_offset_i + jump_y_i;
      end
    end
  end

  assign first_o = first_q;
  assign dy_o = dy_q;
  assign dx_o = dx_q;
  assign offset_o = offset_q;
  assign channel_o = channel_q;
  assign kernel_x_o = kernel_x_q;

  // The channel's place in a group of Rows, where a mask does not tell it.
  if (COUNTS) begin : gen_in_group
    always_ff @(posedge clk_i) begin
      if (start_i) in_group_q <= in_group_i;
      else if (before_first_i) begin
        if ((before_channel_i + 16'd1 >= channels_i) ||
            (before_in_group_i == LaneBits'(Rows - 1)))
          in_group_q <= '0;
        else in_group_q <= before_in_group_i + 1'b1;
      end
    end
  end else begin : gen_no_group
    logic unused;
    assign unused = ^in_group_i;
    assign in_group_q = '0;
  end
  assign in_group_o = in_group_q;
endmodule
