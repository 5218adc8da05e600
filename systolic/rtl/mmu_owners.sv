// The arrays to which a port of the DRAM owes answers, oldest first. A queue.
// SPDX-License-Identifier: Apache-2.0
module mmu_owners #(
    parameter int unsigned Arrays = 2,
    parameter int unsigned Depth = 256  // a power of two
) (
    input logic clk_i,
    input logic clear_i,
    input logic push_i,  // a read is granted
    input logic [$clog2(Arrays)-1:0] owner_i,
    output logic full_o,
    input logic pop_i,  // its answer arrives
    output logic empty_o,
    output logic [$clog2(Arrays)-1:0] owner_o
);
  localparam int unsigned SlotBits = $clog2(Depth);

  logic [$clog2(Arrays)-1:0] memory_q[Depth];
  logic [SlotBits-1:0] write_q, read_q;
  logic [SlotBits:0] count_q;
  assign full_o = count_q[SlotBits];
  assign empty_o = count_q == '0;
  assign owner_o = memory_q[read_q];

  always_ff @(posedge clk_i) begin
    if (push_i) memory_q[write_q] <= owner_i;
    if (clear_i) begin
      write_q <= '0;
      read_q <= '0;
      count_q <= '0;
    end else begin
      write_q <= write_q + SlotBits'(push_i);
      read_q <= read_q + SlotBits'(pop_i);
      count_q <= count_q + (SlotBits + 1)'(push_i) - (SlotBits + 1)'(pop_i);
      no_owner_is_invented : assert (!(pop_i && empty_o));
      no_owner_is_lost : assert (!(push_i && full_o));
      owners_fit_the_queue : assert (count_q <= (SlotBits + 1)'(Depth));
      queue_fills : cover (full_o);
    end
  end

`ifdef FORMAL
  // The specification: a list whose entries move by one place with each answer.
  logic [$clog2(Arrays)-1:0] list_q[Depth];
  logic [Depth-1:0] equal;
  for (genvar i = 0; i < Depth; i++) begin : gen_list
    logic [$clog2(Arrays)-1:0] next;
    logic [SlotBits-1:0] slot;
    assign slot = read_q + SlotBits'(i);
    assign equal[i] = (i >= 32'(count_q)) || (memory_q[slot] == list_q[i]);
    assign next = (pop_i && (i + 1 < Depth)) ? list_q[(i+1)%Depth] : list_q[i];
    always_ff @(posedge clk_i)
      list_q[i] <= (push_i && (i + 32'(pop_i) == 32'(count_q))) ? owner_i : next;
  end
  always_ff @(posedge clk_i) begin
    if (!clear_i) begin
      answers_reach_their_owner : assert (empty_o || (owner_o == list_q[0]));
      // Invariants.
      assert (equal == '1);
      assert (write_q - read_q == count_q[SlotBits-1:0]);
    end
  end
`endif
endmodule
