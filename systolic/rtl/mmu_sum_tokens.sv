// Tokens of output-stationary slots on their way to the rows of the array (mmu_pe_dual describes
// them). stay, first and last go down with the slot, a row per cycle. drain goes down at half that
// speed: each row's sum then enters the sums' path right behind that of the row above.
// SPDX-License-Identifier: Apache-2.0
module mmu_sum_tokens #(
    parameter int unsigned Rows = 4
) (
    input logic clk_i,
    input logic clear_i,
    input logic enable_i,
    // The slot that reaches row 0 in the next cycle.
    input logic stay_i,
    input logic first_i,
    input logic last_i,
    input logic drain_i,
    output logic [4*Rows-1:0] sum_o  // by row: {drain, last, first, stay}
);
  logic [Rows-1:0] stay_q, first_q, last_q;
  logic [2*Rows-2:0] drain_q;

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      stay_q <= '0;
      first_q <= '0;
      last_q <= '0;
      drain_q <= '0;
    end else if (enable_i) begin
      stay_q <= {stay_q[Rows-2:0], stay_i};
      first_q <= {first_q[Rows-2:0], first_i};
      last_q <= {last_q[Rows-2:0], last_i};
      drain_q <= {drain_q[2*Rows-3:0], drain_i};
      chains_begin_and_end_in_their_slots : assert (stay_i || !(first_i || last_i || drain_i));
      sums_drain_during_the_next_chain : cover (first_i && drain_i);
    end
  end

  for (genvar r = 0; r < Rows; r++) begin : gen_row
    assign sum_o[4*r+:4] = {drain_q[2*r], last_q[r], first_q[r], stay_q[r]};
  end
endmodule
