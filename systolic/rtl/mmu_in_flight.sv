// The table of matmuls in flight: a ring of 8. Times are compared for equality with now_i. Entries
// reach each of their three times in order. Gives the tokens and tells accumulator hazards.
// SPDX-License-Identifier: Apache-2.0
module mmu_in_flight #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned Chain = Rows,  // cycles of a sum down a column
    parameter int unsigned Fill = Rows,   // the same from its first product on
    parameter int unsigned TimeBits = 20
) (
    input logic clk_i,
    input logic clear_i,
    input logic [TimeBits-1:0] now_i,
    // A matmul that starts in this cycle.
    input logic start_i,
    input logic [16:0] slots_i,
    input logic [TimeBits-1:0] drain_slots_i,  // before its first result leaves
    input logic [15:0] count_i,
    input logic [15:0] row_i,  // first accumulator row
    input logic [3:0] signal_i,
    output logic full_o,
    output logic empty_o,
    // High when a matmul of these rows may accumulate if it starts in this cycle.
    input logic ask_i,
    output logic hazard_o,
    // Tokens given and matmuls ended with this cycle.
    output logic [3:0] give_o,
    output logic done_o
);
  localparam int unsigned Entries = 8;
  // The two takers that wait for the operands' having been read, not for results.
  localparam logic [3:0] EARLY = 4'b0011;

  logic [3:0] signal_q[Entries];
  logic [16:0] row_q[Entries];
  logic [16:0] row_end_q[Entries];
  logic [TimeBits-1:0] early_q[Entries];
  logic [TimeBits-1:0] done_q[Entries];
  logic [TimeBits-1:0] leave_q[Entries];
  // An accumulating matmul that overlaps may start when now - its row has reached this.
  logic [TimeBits-1:0] ready_q[Entries];
  logic [Entries-1:0] valid_q;
  logic [2:0] write_q, early_index_q, done_index_q, leave_index_q;
  // Entries that have not reached a time yet.
  logic [3:0] early_left_q, done_left_q, count_q;

  logic early, done, leave;
  assign early = (early_left_q != '0) && (early_q[early_index_q] == now_i);
  assign done = (done_left_q != '0) && (done_q[done_index_q] == now_i);
  assign leave = (count_q != '0) && (leave_q[leave_index_q] == now_i);

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      signal_q[write_q] <= signal_i;
      row_q[write_q] <= 17'(row_i);
      row_end_q[write_q] <= 17'(row_i) + 17'(count_i);
      early_q[write_q] <= now_i + TimeBits'(slots_i) + TimeBits'(Rows - 1);
      done_q[write_q] <= now_i + TimeBits'(count_i) + TimeBits'(Fill + Columns + 1) + drain_slots_i;
      leave_q[write_q] <= now_i + TimeBits'(slots_i) + drain_slots_i +
                          TimeBits'(Fill + Columns + 3);
      ready_q[write_q] <= now_i - TimeBits'(row_i) + TimeBits'(Chain + 2) + drain_slots_i;
    end
    if (clear_i) begin
      valid_q <= '0;
      write_q <= '0;
      early_index_q <= '0;
      done_index_q <= '0;
      leave_index_q <= '0;
      early_left_q <= '0;
      done_left_q <= '0;
      count_q <= '0;
    end else begin
      write_q <= write_q + 3'(start_i);
      early_index_q <= early_index_q + 3'(early);
      done_index_q <= done_index_q + 3'(done);
      leave_index_q <= leave_index_q + 3'(leave);
      early_left_q <= early_left_q + 4'(start_i) - 4'(early);
      done_left_q <= done_left_q + 4'(start_i) - 4'(done);
      count_q <= count_q + 4'(start_i) - 4'(leave);
      valid_q <= (valid_q & ~(Entries'(leave) << leave_index_q)) | (Entries'(start_i) << write_q);
      table_is_not_overrun : assert (!(start_i && full_o));
      entries_pass_their_times_in_order : assert ((early_left_q <= count_q) &&
                                                  (done_left_q <= count_q));
      table_is_full : cover (full_o);
      chain_waits_for_its_accumulators : cover (hazard_o);
    end
  end

  always_comb begin : hazards
    // verilator tracing_off
    int unsigned i;
    logic [TimeBits-1:0] slack;
    // verilator tracing_on
    i = 0;
    slack = '0;
    hazard_o = 1'b0;
    if (ask_i) begin
      for (i = 0; i < Entries; i++) begin
        slack = now_i - TimeBits'(row_i) - ready_q[i[2:0]];
        if (valid_q[i[2:0]] && slack[TimeBits-1] && (row_q[i[2:0]] < 17'(row_i) + 17'(count_i)) &&
            (17'(row_i) < row_end_q[i[2:0]])) begin
          hazard_o = 1'b1;
        end
      end
    end
  end

  assign full_o = count_q == 4'(Entries);
  assign empty_o = count_q == '0;
  assign done_o = done;
  assign give_o = (early ? signal_q[early_index_q] & EARLY : 4'b0000) |
                  (done ? signal_q[done_index_q] & ~EARLY : 4'b0000);
endmodule
