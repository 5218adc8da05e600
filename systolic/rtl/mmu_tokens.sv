// The tokens: a counter of 8 bits for each (giver, taker). Bit 4 * giver + taker of give_i adds one
// (shown from the next cycle on); a unit that pops takes one from each giver its wait mask names.
// SPDX-License-Identifier: Apache-2.0
module mmu_tokens (
    input logic clk_i,
    input logic clear_i,
    input logic [15:0] give_i,
    input logic [15:0] wait_i,      // bit 4 * taker + giver
    input logic [3:0] pop_i,        // by taker
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
    end
  end
  // verilator lint_on BLKSEQ

  assign missing_o = wait_i & ~available_q;
  assign overflow_o = overflow_q;
endmodule
