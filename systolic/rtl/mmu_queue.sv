// The instruction queue of one unit: a pushed word is at the head from the next cycle on, a pop
// frees an entry in the next cycle.
// SPDX-License-Identifier: Apache-2.0
module mmu_queue #(
    parameter int unsigned Depth = 16
) (
    input logic clk_i,
    input logic clear_i,
    input logic push_i,
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    output logic full_o,
    input logic pop_i,
    output logic valid_o,
    output logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_o
);
  localparam int unsigned PointerBits = (Depth > 1) ? $clog2(Depth) : 1;
  localparam int unsigned CountBits = $clog2(Depth + 1);
  localparam logic [PointerBits-1:0] LAST = PointerBits'(Depth - 1);

  logic [mmu_pkg::INSTRUCTION_BITS-1:0] memory_q[Depth];
  logic [PointerBits-1:0] write_q;
  logic [PointerBits-1:0] read_q;
  logic [CountBits-1:0] count_q;

  always_ff @(posedge clk_i) begin
    if (push_i) memory_q[write_q] <= word_i;
    if (clear_i) begin
      write_q <= '0;
      read_q <= '0;
      count_q <= '0;
    end else begin
      if (push_i) write_q <= (write_q == LAST) ? '0 : write_q + 1'b1;
      if (pop_i) read_q <= (read_q == LAST) ? '0 : read_q + 1'b1;
      count_q <= count_q + CountBits'(push_i) - CountBits'(pop_i);
      queue_is_not_overrun : assert (!(push_i && full_o));
      queue_is_not_underrun : assert (!(pop_i && !valid_o));
      queue_counts_its_words : assert (count_q <= CountBits'(Depth));
      queue_is_full : cover (full_o);
      queue_is_filled_and_emptied : cover (push_i && pop_i && (write_q == LAST));
    end
  end

`ifdef FORMAL
  // Invariants that prove the rules above.
  always_ff @(posedge clk_i) begin
    if (!clear_i) begin
      assert ((32'(write_q) < Depth) && (32'(read_q) < Depth));
      assert ((32'(read_q) + 32'(count_q) == 32'(write_q)) ||
              (32'(read_q) + 32'(count_q) == 32'(write_q) + Depth));
    end
  end
`endif

  assign full_o = count_q == CountBits'(Depth);
  assign valid_o = count_q != '0;
  assign word_o = memory_q[read_q];
endmodule
