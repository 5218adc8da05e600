// The stream walker: the positions of a matmul, one per slot, each shown to the lanes in the cycle
// after its slot has left. A transposed stream has use for the first Rows of them only.
// SPDX-License-Identifier: Apache-2.0
module mmu_stream #(
    parameter int unsigned AddressBits = 13
) (
    input logic clk_i,
    // SetStream, or the Matmul that starts; head of the compute queue.
    // verilator lint_off UNUSEDSIGNAL
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,  // buffer addresses wrap: low bits only
    // verilator lint_on UNUSEDSIGNAL
    input logic set_i,
    input logic start_i,  // slot 0 leaves
    input logic step_i,   // a later slot leaves
    output logic [15:0] y_o,
    output logic [15:0] x_o,
    output logic [AddressBits-1:0] address_o,
    output logic [15:0] in_height_o,
    output logic [15:0] in_width_o
);
  logic [15:0] in_height_q, in_width_q, stride_y_q, stride_x_q, restart_y_q, restart_x_q;
  logic [15:0] out_height_q, out_width_q;
  logic [AddressBits-1:0] step_x_q, wrap_y_q, wrap_n_q;

  logic [15:0] y_q, x_q, rows_left_q, columns_left_q;
  logic [AddressBits-1:0] address_q;

  always_ff @(posedge clk_i) begin
    if (set_i) begin
      in_height_q <= word_i[mmu_pkg::SET_STREAM_IN_HEIGHT_LSB+:16];
      in_width_q <= word_i[mmu_pkg::SET_STREAM_IN_WIDTH_LSB+:16];
      stride_y_q <= word_i[mmu_pkg::SET_STREAM_STRIDE_Y_LSB+:16];
      stride_x_q <= word_i[mmu_pkg::SET_STREAM_STRIDE_X_LSB+:16];
      restart_y_q <= word_i[mmu_pkg::SET_STREAM_RESTART_Y_LSB+:16];
      restart_x_q <= word_i[mmu_pkg::SET_STREAM_RESTART_X_LSB+:16];
      out_height_q <= word_i[mmu_pkg::SET_STREAM_OUT_HEIGHT_LSB+:16];
      out_width_q <= word_i[mmu_pkg::SET_STREAM_OUT_WIDTH_LSB+:16];
      step_x_q <= word_i[mmu_pkg::SET_STREAM_STEP_X_LSB+:AddressBits];
      wrap_y_q <= word_i[mmu_pkg::SET_STREAM_WRAP_Y_LSB+:AddressBits];
      wrap_n_q <= word_i[mmu_pkg::SET_STREAM_WRAP_N_LSB+:AddressBits];
    end

    if (start_i) begin
      y_q <= word_i[mmu_pkg::MATMUL_Y_LSB+:16];
      x_q <= word_i[mmu_pkg::MATMUL_X_LSB+:16];
      rows_left_q <= word_i[mmu_pkg::MATMUL_ROWS_LEFT_LSB+:16];
      columns_left_q <= word_i[mmu_pkg::MATMUL_COLUMNS_LEFT_LSB+:16];
      address_q <= word_i[mmu_pkg::MATMUL_ADDRESS_LSB+:AddressBits];
    end else if (step_i) begin
      if (columns_left_q > 16'd1) begin
        columns_left_q <= columns_left_q - 16'd1;
        x_q <= x_q + stride_x_q;
        address_q <= address_q + step_x_q;
      end else begin
        columns_left_q <= out_width_q;
        x_q <= restart_x_q;
        if (rows_left_q > 16'd1) begin
          rows_left_q <= rows_left_q - 16'd1;
          y_q <= y_q + stride_y_q;
          address_q <= address_q + wrap_y_q;
        end else begin
          rows_left_q <= out_height_q;
          y_q <= restart_y_q;
          address_q <= address_q + wrap_n_q;
        end
      end
    end
  end

  assign y_o = y_q;
  assign x_o = x_q;
  assign address_o = address_q;
  assign in_height_o = in_height_q;
  assign in_width_o = in_width_q;
endmodule
