// The stream walker: the positions of a matmul, one per slot, each shown to the lanes in the cycle
// after its slot has left. A transposed stream has use for the first Rows of them only.
// SPDX-License-Identifier: Apache-2.0
module mmu_stream #(
    parameter int unsigned AddressBits = 13
) (
    input logic clk_i,
    // SetStream, or the Matmul that starts. Head of the compute queue.
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    input logic set_i,
    input logic start_i,  // slot 0 leaves
    input logic step_i,   // a later slot leaves
    output logic [15:0] y_o,
    output logic [15:0] x_o,
    output logic [AddressBits-1:0] address_o,
    output logic [15:0] in_height_o,
    output logic [15:0] in_width_o
);
  mmu_pkg::set_stream_t set_stream;
  mmu_pkg::matmul_t matmul;
  assign set_stream = word_i;
  assign matmul = word_i;
  logic [15:0] in_height_q, in_width_q, stride_y_q, stride_x_q, restart_y_q, restart_x_q;
  logic [15:0] out_height_q, out_width_q;
  logic [AddressBits-1:0] step_x_q, wrap_y_q, wrap_n_q;

  logic [15:0] y_q, x_q, rows_left_q, columns_left_q;
  logic [AddressBits-1:0] address_q;

  always_ff @(posedge clk_i) begin
    if (set_i) begin
      in_height_q <= set_stream.in_height;
      in_width_q <= set_stream.in_width;
      stride_y_q <= set_stream.stride_y;
      stride_x_q <= set_stream.stride_x;
      restart_y_q <= set_stream.restart_y;
      restart_x_q <= set_stream.restart_x;
      out_height_q <= set_stream.out_height;
      out_width_q <= set_stream.out_width;
      step_x_q <= set_stream.step_x[AddressBits-1:0];
      wrap_y_q <= set_stream.wrap_y[AddressBits-1:0];
      wrap_n_q <= set_stream.wrap_n[AddressBits-1:0];
    end

    if (start_i) begin
      y_q <= matmul.y;
      x_q <= matmul.x;
      rows_left_q <= matmul.rows_left;
      columns_left_q <= matmul.columns_left;
      address_q <= matmul.address[AddressBits-1:0];
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
