// Between buffer and array. In a forward stream array row r takes lane r. In a transposed one every
// row takes, in slot p, lane p mod Rows in that very cycle. Slots arrive skewed by one cycle per
// row, so each row keeps its own copy of the slot's lane. Combinational from lanes to rows.
// SPDX-License-Identifier: Apache-2.0
module mmu_transposer #(
    parameter int unsigned Rows = 4,
    parameter int unsigned ElementBits = 16
) (
    input logic clk_i,
    input logic clear_i,
    input logic enable_i,
    // The slot that reaches row 0 in the next cycle.
    input logic transpose_i,
    input logic [$clog2(Rows)-1:0] lane_i,
    input logic swap_i,
    input logic [Rows*ElementBits-1:0] data_i,
    output logic [Rows*ElementBits-1:0] act_o,
    output logic [Rows-1:0] swap_o
);
  localparam int unsigned LaneBits = $clog2(Rows);

  logic [Rows-1:0] transpose_q;
  logic [Rows-1:0] swap_q;
  logic [Rows*LaneBits-1:0] lane_q;

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      transpose_q <= {transpose_q[Rows-2:0], transpose_i};
      swap_q <= {swap_q[Rows-2:0], swap_i};
      lane_q <= {lane_q[(Rows-1)*LaneBits-1:0], lane_i};
    end
    if (clear_i) begin
      transpose_q <= '0;
      swap_q <= '0;
      lane_q <= '0;
    end
  end

  always_comb begin : select
    // verilator tracing_off
    int unsigned r;
    // verilator tracing_on
    r = 0;
    act_o = data_i;
    if (transpose_q != '0) begin
      for (r = 0; r < Rows; r++) begin
        if (transpose_q[r]) begin
          act_o[r*ElementBits+:ElementBits] =
              data_i[32'(lane_q[r*LaneBits+:LaneBits])*ElementBits+:ElementBits];
        end
      end
    end
  end

  assign swap_o = swap_q;
endmodule
