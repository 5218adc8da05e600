// The unified buffer, a bank per array row, with an address unit per lane. The lanes are a ring.
// Positions move on by one lane per cycle. A lane keeps the tap it gets with the first position and
// hands the next one on. A forward stream's positions enter at lane 0. The Rows ones of a
// transposed stream enter at the lane of its first value and turn until all values have met them. A
// lane's element, zero outside the input, appears in the cycle after its request. All lanes and
// banks in one block, which simulates fast. mmu_buffer_banks is the view to synthesise.
// SPDX-License-Identifier: Apache-2.0
module mmu_buffer #(
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

  (* nomem2reg *)
  logic [ElementBits-1:0] memory_q[Rows][BufferRows] /* verilator public_flat_rd */;
  logic [Rows*ElementBits-1:0] data_q;
  // Position and tap of each lane, and whether the position is the first that meets this tap.
  logic [Rows-1:0] first_q;
  logic [15:0] y_q[Rows];
  logic [15:0] x_q[Rows];
  logic [AddressBits-1:0] address_q[Rows];
  logic [15:0] dy_q[Rows];
  logic [15:0] dx_q[Rows];
  logic [AddressBits-1:0] offset_q[Rows];
  logic [15:0] channel_q[Rows];
  logic [LaneBits-1:0] in_group_q[Rows];  // the channel modulo Rows, if that is counted
  logic [15:0] kernel_x_q[Rows];

  // verilator lint_off BLKSEQ
  // In-place updates, readers first, so that the simulator need not copy the arrays. Values for
  // other blocks use non-blocking assignments.
  always_ff @(posedge clk_i) begin : lanes
    // verilator tracing_off
    int unsigned i, r;
    logic [16:0] y, x;
    logic [15:0] dy, dx, channel, kernel_x;
    logic [15:0] lane_0_dy, lane_0_dx, lane_0_channel, lane_0_kernel_x;
    logic [AddressBits-1:0] lane_0_offset;
    logic [LaneBits-1:0] lane_0_in_group, in_group;
    logic ends_group;
    logic [15:0] last_y, last_x;
    logic [AddressBits-1:0] address, offset, last_address;
    // verilator tracing_on
    i = 0;
    r = 0;
    y = '0;
    x = '0;
    dy = '0;
    dx = '0;
    channel = '0;
    kernel_x = '0;
    lane_0_dy = '0;
    lane_0_dx = '0;
    lane_0_offset = '0;
    lane_0_channel = '0;
    lane_0_kernel_x = '0;
    lane_0_in_group = '0;
    in_group = '0;
    ends_group = 1'b0;
    address = '0;
    offset = '0;
    last_y = '0;
    last_x = '0;
    last_address = '0;
    if (enable_i) begin
      if (enters_i) begin
        y_q[entry_i] = y_i;
        x_q[entry_i] = x_i;
        address_q[entry_i] = address_i;
      end
      for (r = 0; r < Rows; r++) begin
        y = {y_q[r][15], y_q[r]} + {dy_q[r][15], dy_q[r]};
        x = {x_q[r][15], x_q[r]} + {dx_q[r][15], dx_q[r]};
        address = address_q[r] + offset_q[r];
        data_q[r*ElementBits+:ElementBits] <=
            ((y < {1'b0, in_height_i}) && (x < {1'b0, in_width_i})) ? memory_q[r][address] : '0;
      end
    end
    // Taps: the last lane hands on to lane 0 while a transposed stream has values left.
    if ((first_q != '0) || restart_i) begin
      lane_0_dy = dy_q[0];
      lane_0_dx = dx_q[0];
      lane_0_offset = offset_q[0];
      lane_0_channel = channel_q[0];
      lane_0_kernel_x = kernel_x_q[0];
      if (COUNTS) lane_0_in_group = in_group_q[0];
      for (i = 0; i < Rows; i++) begin
        if ((i == 0) ? restart_i : first_q[Rows-1-i]) begin
          dy = (i == Rows - 1) ? lane_0_dy : dy_q[Rows-1-i];
          dx = (i == Rows - 1) ? lane_0_dx : dx_q[Rows-1-i];
          offset = (i == Rows - 1) ? lane_0_offset : offset_q[Rows-1-i];
          channel = (i == Rows - 1) ? lane_0_channel : channel_q[Rows-1-i];
          kernel_x = (i == Rows - 1) ? lane_0_kernel_x : kernel_x_q[Rows-1-i];
          if (COUNTS) in_group = (i == Rows - 1) ? lane_0_in_group : in_group_q[Rows-1-i];
          ends_group = whole_q ? (in_group == LaneBits'(Rows - 1))
                               : ((channel & group_mask_q) == group_mask_q);
          if (channel + 16'd1 < channels_q) begin
            if (ends_group) offset = offset + 1'b1;
            channel = channel + 16'd1;
            in_group = (in_group == LaneBits'(Rows - 1)) ? '0 : in_group + 1'b1;
          end else begin
            channel = '0;
            in_group = '0;
            if (kernel_x + 16'd1 < kernel_width_q) begin
              kernel_x = kernel_x + 16'd1;
              dx = dx + step_dx_q;
              offset = offset + jump_x_q;
            end else begin
              kernel_x = '0;
              dx = restart_dx_q;
              dy = dy + step_dy_q;
              offset = offset + jump_y_q;
            end
          end
          dy_q[(i==0)?0 : Rows-i] = dy;
          dx_q[(i==0)?0 : Rows-i] = dx;
          offset_q[(i==0)?0 : Rows-i] = offset;
          channel_q[(i==0)?0 : Rows-i] = channel;
          if (COUNTS) in_group_q[(i==0)?0 : Rows-i] = in_group;
          kernel_x_q[(i==0)?0 : Rows-i] = kernel_x;
        end
      end
    end
    if (enable_i) begin
      first_q = {first_q[Rows-2:0], restart_i};
      last_y = y_q[Rows-1];
      last_x = x_q[Rows-1];
      last_address = address_q[Rows-1];
      for (i = 0; i < Rows - 1; i++) y_q[Rows-1-i] = y_q[Rows-2-i];
      for (i = 0; i < Rows - 1; i++) x_q[Rows-1-i] = x_q[Rows-2-i];
      for (i = 0; i < Rows - 1; i++) address_q[Rows-1-i] = address_q[Rows-2-i];
      y_q[0] = last_y;
      x_q[0] = last_x;
      address_q[0] = last_address;
    end
    if (start_i) begin
      first_q[start_lane_i] = 1'b1;
      dy_q[start_lane_i] = matmul.dy;
      dx_q[start_lane_i] = matmul.dx;
      offset_q[start_lane_i] = matmul.offset[AddressBits-1:0];
      channel_q[start_lane_i] = matmul.channel;
      if (COUNTS) in_group_q[start_lane_i] = start_in_group;
      kernel_x_q[start_lane_i] = matmul.kernel_x;
    end
    if (write_i) begin
      for (r = 0; r < Rows; r++) begin
        memory_q[r][write_row_i] = write_data_i[r*ElementBits+:ElementBits];
      end
    end
  end
  // verilator lint_on BLKSEQ

  assign data_o = data_q;
endmodule
