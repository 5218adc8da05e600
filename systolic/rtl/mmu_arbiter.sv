// Shares the four ports of a DRAM between several arrays, in turns. Requests pass in the same
// cycle. The next turn goes to the next array that requests. It ends when a port grants a request.
// A queue for each port that reads holds the owners of its answers, which come in order.
// SPDX-License-Identifier: Apache-2.0
module mmu_arbiter #(
    parameter int unsigned Arrays = 2,  // 2 to 8
    parameter int unsigned Reads = 256  // outstanding at each port that reads, a power of two
) (
    input logic clk_i,
    input logic clear_i,
    // By array: load, weights, store (writes), operand. A request stands until it is granted.
    input logic [4*Arrays-1:0] request_i,
    output logic [4*Arrays-1:0] ready_o,
    output logic [4*Arrays-1:0] valid_o,  // an answer. Writes have none
    // The ports of the DRAM.
    output logic [3:0] request_o,
    input logic [3:0] ready_i,
    input logic [3:0] valid_i,
    output logic [$clog2(Arrays)-1:0] turn_o,  // the array that has the ports
    // Cycles in which an array requests and another one has the ports, 64 bits each.
    output logic [64*Arrays-1:0] waits_o
);
  localparam int unsigned ArrayBits = $clog2(Arrays);
  localparam int unsigned STORE = 2;

  if ((Arrays < 2) || (Arrays > 8) || (Reads < 2) ||
      ((Reads & (Reads - 1)) != 0)) begin : gen_parameters
    $error("mmu_arbiter: Arrays is 2 to 8, Reads a power of two");
  end

  logic [ArrayBits-1:0] turn_q, turn;
  logic held_q;  // the turn has not ended
  logic [Arrays-1:0] requests;
  logic [3:0] full, grant;
  for (genvar a = 0; a < Arrays; a++) begin : gen_requests
    assign requests[a] = request_i[4*a+:4] != '0;
  end

  // The next array behind the last turn that requests. Later iterations are nearer.
  always_comb begin : next_turn
    int unsigned i, a;
    turn = turn_q;
    for (i = Arrays; i > 0; i--) begin
      a = 32'(turn_q) + i;
      if (a >= Arrays) a = a - Arrays;
      if (!held_q && requests[a[ArrayBits-1:0]]) turn = a[ArrayBits-1:0];
    end
  end
  assign turn_o = turn;
  assign request_o = request_i[4*32'(turn)+:4] & ~full;
  assign grant = request_o & ready_i;
  for (genvar a = 0; a < Arrays; a++) begin : gen_ready
    assign ready_o[4*a+:4] = (turn == ArrayBits'(a)) ? (ready_i & ~full) : '0;
  end

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      turn_q <= ArrayBits'(Arrays - 1);
      held_q <= 1'b0;
    end else begin
      turn_q <= turn;
      held_q <= (requests != '0) && (grant == '0);
    end
  end

  logic [3:0] empty;
  assign {full[STORE], empty[STORE]} = 2'b01;
  for (genvar p = 0; p < 4; p++) begin : gen_ports
    logic [ArrayBits-1:0] owner;
    if (p != STORE) begin : gen_reads
      mmu_owners #(
          .Arrays(Arrays),
          .Depth(Reads)
      ) u_owners (
          .clk_i,
          .clear_i,
          .push_i(grant[p]),
          .owner_i(turn),
          .full_o(full[p]),
          .pop_i(valid_i[p]),
          .empty_o(empty[p]),
          .owner_o(owner)
      );
    end else begin : gen_writes
      assign owner = '0;
    end
    for (genvar a = 0; a < Arrays; a++) begin : gen_valid
      assign valid_o[4*a+p] = valid_i[p] && (owner == ArrayBits'(a));
    end
  end

  for (genvar a = 0; a < Arrays; a++) begin : gen_waits
    logic [63:0] count_q;
    assign waits_o[64*a+:64] = count_q;
    always_ff @(posedge clk_i) begin
      if (clear_i) count_q <= '0;
      else if (requests[a] && (turn != ArrayBits'(a))) count_q <= count_q + 1'b1;
    end
  end

  // The rules of the turns.
  logic [4*Arrays-1:0] left_q;  // not granted in the last cycle
  logic [3:0] held_request_q;
  always_ff @(posedge clk_i) begin
    left_q <= clear_i ? '0 : (request_i & ~ready_o);
    held_request_q <= (clear_i || (grant != '0)) ? '0 : request_o;
    if (!clear_i) begin
      answers_were_asked_for : assert ((valid_i & empty) == '0);
      requests_stand : assert ((left_q & ~request_i) == '0);
      turns_are_of_arrays : assert (32'(turn_q) < Arrays);
      turns_are_used : assert ((requests == '0) || requests[turn]);
      turns_end_with_a_grant : assert ((held_request_q & ~request_o) == '0);
      arrays_see_their_grants : assert ((request_i & ready_o) ==
                                        ((4 * Arrays)'(grant) << (4 * 32'(turn))));
      // No grant although somebody asks: the DRAM is not ready, or owes a whole queue of answers.
      ready_ports_grant : assert ((grant != '0) || ((request_i[4*32'(turn)+:4] & ready_i &
                                                    ~full) == '0));
      turns_change : cover ((grant != '0) && (turn != turn_q));
    end
  end
`ifdef FORMAL
  // Turns of others that end while an array requests: at most one of each.
  logic [Arrays-1:0] fair, invariant;
  for (genvar a = 0; a < Arrays; a++) begin : gen_fair
    logic [3:0] passed_q, distance;  // from the last turn to this array
    assign distance = (a > 32'(turn_q)) ? 4'(a - 32'(turn_q)) : 4'(a + Arrays - 32'(turn_q));
    assign fair[a] = 32'(passed_q) <= Arrays - 1;
    assign invariant[a] = held_q ? ((32'(turn_q) == a) ||
                                    (32'(passed_q) + 32'(distance) <= Arrays - 1))
                                 : (32'(passed_q) + 32'(distance) <= Arrays);
    always_ff @(posedge clk_i) begin
      if (clear_i || !requests[a] || ((turn == ArrayBits'(a)) && (grant != '0))) passed_q <= '0;
      else if (grant != '0) passed_q <= passed_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!clear_i) begin
      assert (!held_q || requests[turn_q]);
      assert ((held_request_q == '0) || (held_q && (turn == turn_q)));
      nobody_waits_for_more_turns : assert (fair == '1);
      turns_pass_in_order : assert (invariant == '1);
    end
  end
`endif
endmodule
