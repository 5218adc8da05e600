// The tokens: a counter of 8 bits for each (giver, taker). Bit 4 * giver + taker of give_i adds one
// (shown from the next cycle on). A unit that pops takes one from each giver its wait mask names.
// SPDX-License-Identifier: Apache-2.0
module mmu_tokens (
    input logic clk_i,
    input logic clear_i,
    input logic [15:0] give_i,
    input logic [15:0] wait_i,      // bit 4 * taker + giver
    input logic [3:0] pop_i,        // by taker. Never while one of its tokens is missing
    output logic [15:0] missing_o,  // bit 4 * taker + giver: waited for, and not there
    output logic overflow_o
);
  logic [7:0] count_q[16];
  logic [15:0] available_q;  // bit 4 * taker + giver
  logic overflow_q;

  // verilator lint_off BLKSEQ
  // In-place updates of an array in a loop, which the simulator would otherwise copy.
  always_ff @(posedge clk_i) begin : counters
    // verilator tracing_off
    int unsigned giver, taker;
    logic give, take;
    // verilator tracing_on
    giver = 0;
    taker = 0;
    give = 1'b0;
    take = 1'b0;
    if (clear_i) begin
      for (giver = 0; giver < 16; giver++) count_q[giver[3:0]] = 8'd0;
      available_q <= '0;
      overflow_q <= 1'b0;
    end else if ((give_i != '0) || (pop_i != '0)) begin
      for (taker = 0; taker < 4; taker++) begin
        for (giver = 0; giver < 4; giver++) begin
          give = give_i[4'(4*giver+taker)];
          take = pop_i[taker[1:0]] && wait_i[4'(4*taker+giver)];
          if (give && !take && (count_q[4'(4*taker+giver)] == 8'd255)) overflow_q <= 1'b1;
          count_q[4'(4*taker+giver)] = count_q[4'(4*taker+giver)] + 8'(give) - 8'(take);
          available_q[4'(4*taker+giver)] <= count_q[4'(4*taker+giver)] != 8'd0;
        end
      end
      tokens_taken_are_there : assert ((missing_o & {{4{pop_i[3]}}, {4{pop_i[2]}}, {4{pop_i[1]}},
                                                     {4{pop_i[0]}}}) == '0);
      tokens_are_given_and_taken : cover ((give_i != '0) && pop_i[2] && (wait_i[11:8] != '0));
      unit_waits_for_two_tokens : cover ((missing_o[8] || missing_o[9]) && missing_o[11]);
    end
  end
  // verilator lint_on BLKSEQ

`ifdef FORMAL
  // No token is lost, none is made.
  // No counter falls below zero. An invariant proves it.
  for (genvar i = 0; i < 16; i++) begin : gen_counter
    logic [7:0] tokens_q;
    always_ff @(posedge clk_i) begin
      if (clear_i) tokens_q <= '0;
      else tokens_q <= tokens_q + 8'(give_i[4*(i%4)+i/4]) - 8'(pop_i[i/4] && wait_i[i]);
      if (!clear_i) begin
        assert (tokens_q == count_q[i]);
        assert (available_q[i] == (count_q[i] != 8'd0));
        assert (!(pop_i[i/4] && wait_i[i]) || (count_q[i] != 8'd0));
      end
    end
  end
`endif

  assign missing_o = wait_i & ~available_q;
  assign overflow_o = overflow_q;
endmodule
