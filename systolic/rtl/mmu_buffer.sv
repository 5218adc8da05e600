// The unified buffer, a bank per array row, with an address unit per lane. Positions move down the
// lanes, one lane per cycle; each lane keeps the tap it gets with the first position and hands the
// next one on. A lane's element, zero outside the input, is shown in the cycle after it was asked.
// SPDX-License-Identifier: Apache-2.0
module mmu_buffer #(
    parameter int unsigned Rows = 4,
    parameter int unsigned BufferRows = 64,
    parameter int unsigned ElementBits = 16
) (
    input logic clk_i,
    input logic enable_i,  // some lane has a position
    // Writes of the load unit; a read of the same row gives the old value.
    input logic write_i,
    input logic [$clog2(BufferRows)-1:0] write_row_i,
    input logic [Rows*ElementBits-1:0] write_data_i,
    // SetTaps, or the Matmul whose slot 0 leaves; head of the compute queue.
    // verilator lint_off UNUSEDSIGNAL
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,  // buffer addresses wrap: low bits only
    // verilator lint_on UNUSEDSIGNAL
    input logic set_i,
    input logic start_i,
    input logic restart_i,  // the first slot of a transposed stream's next block leaves
    // The position at lane 0.
    input logic first_i,
    input logic [15:0] y_i,
    input logic [15:0] x_i,
    input logic [$clog2(BufferRows)-1:0] address_i,
    input logic [15:0] in_height_i,
    input logic [15:0] in_width_i,
    output logic [Rows*ElementBits-1:0] data_o
);
  localparam int unsigned AddressBits = $clog2(BufferRows);

  logic [15:0] channels_q, kernel_width_q, group_mask_q, step_dy_q, step_dx_q, restart_dx_q;
  logic [AddressBits-1:0] jump_x_q, jump_y_q;
  always_ff @(posedge clk_i) begin
    if (set_i) begin
      channels_q <= word_i[mmu_pkg::SET_TAPS_CHANNELS_LSB+:16];
      kernel_width_q <= word_i[mmu_pkg::SET_TAPS_KERNEL_WIDTH_LSB+:16];
      group_mask_q <= ~(16'hFFFF << word_i[mmu_pkg::SET_TAPS_LOG2_GROUP_LSB+:4]);
      step_dy_q <= word_i[mmu_pkg::SET_TAPS_STEP_DY_LSB+:16];
      step_dx_q <= word_i[mmu_pkg::SET_TAPS_STEP_DX_LSB+:16];
      restart_dx_q <= word_i[mmu_pkg::SET_TAPS_RESTART_DX_LSB+:16];
      jump_x_q <= word_i[mmu_pkg::SET_TAPS_JUMP_X_LSB+:AddressBits];
      jump_y_q <= word_i[mmu_pkg::SET_TAPS_JUMP_Y_LSB+:AddressBits];
    end
  end

  (* nomem2reg *)
  logic [ElementBits-1:0] memory_q[Rows][BufferRows] /* verilator public_flat_rd */;
  logic [Rows*ElementBits-1:0] data_q;
  // Position and tap of each lane; positions of lane 0 are the ports.
  logic [Rows-1:0] first_q;
  logic [15:0] y_q[Rows];
  logic [15:0] x_q[Rows];
  logic [AddressBits-1:0] address_q[Rows];
  logic [15:0] dy_q[Rows];
  logic [15:0] dx_q[Rows];
  logic [AddressBits-1:0] offset_q[Rows];
  logic [15:0] channel_q[Rows];
  logic [15:0] kernel_x_q[Rows];

  // verilator lint_off BLKSEQ
  // In-place updates, readers first, so that the simulator need not copy the arrays. What other
  // blocks read is assigned as usual.
  always_ff @(posedge clk_i) begin : lanes
    // verilator tracing_off
    int unsigned i, r;
    logic [16:0] y, x;
    logic [15:0] dy, dx, channel, kernel_x;
    logic [AddressBits-1:0] address, offset;
    // verilator tracing_on
    i = 0;
    r = 0;
    y = '0;
    x = '0;
    dy = '0;
    dx = '0;
    channel = '0;
    kernel_x = '0;
    address = '0;
    offset = '0;
    if (enable_i) begin
      first_q[0] = first_i;
      y_q[0] = y_i;
      x_q[0] = x_i;
      address_q[0] = address_i;
      for (r = 0; r < Rows; r++) begin
        y = {y_q[r][15], y_q[r]} + {dy_q[r][15], dy_q[r]};
        x = {x_q[r][15], x_q[r]} + {dx_q[r][15], dx_q[r]};
        address = address_q[r] + offset_q[r];
        data_q[r*ElementBits+:ElementBits] <=
            ((y < {1'b0, in_height_i}) && (x < {1'b0, in_width_i})) ? memory_q[r][address] : '0;
      end
    end
    // Taps: the last lane hands on to lane 0, for the next block of a transposed stream.
    if ((first_q != '0) || restart_i) begin
      for (i = 0; i < Rows; i++) begin
        if ((i == 0) ? restart_i : first_q[Rows-1-i]) begin
          dy = dy_q[Rows-1-i];
          dx = dx_q[Rows-1-i];
          offset = offset_q[Rows-1-i];
          channel = channel_q[Rows-1-i];
          kernel_x = kernel_x_q[Rows-1-i];
          if (channel + 16'd1 < channels_q) begin
            if ((channel & group_mask_q) == group_mask_q) offset = offset + 1'b1;
            channel = channel + 16'd1;
          end else begin
            channel = '0;
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
          kernel_x_q[(i==0)?0 : Rows-i] = kernel_x;
        end
      end
    end
    if (start_i) begin
      dy_q[0] = word_i[mmu_pkg::MATMUL_DY_LSB+:16];
      dx_q[0] = word_i[mmu_pkg::MATMUL_DX_LSB+:16];
      offset_q[0] = word_i[mmu_pkg::MATMUL_OFFSET_LSB+:AddressBits];
      channel_q[0] = word_i[mmu_pkg::MATMUL_CHANNEL_LSB+:16];
      kernel_x_q[0] = word_i[mmu_pkg::MATMUL_KERNEL_X_LSB+:16];
    end
    if (enable_i) begin
      first_q = first_q << 1;
      for (i = 0; i < Rows - 1; i++) y_q[Rows-1-i] = y_q[Rows-2-i];
      for (i = 0; i < Rows - 1; i++) x_q[Rows-1-i] = x_q[Rows-2-i];
      for (i = 0; i < Rows - 1; i++) address_q[Rows-1-i] = address_q[Rows-2-i];
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
