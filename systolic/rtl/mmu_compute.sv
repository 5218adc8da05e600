// The control of the compute unit: starts matmuls, counts their slots, classes every cycle.
// SPDX-License-Identifier: Apache-2.0
module mmu_compute #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned Chain = Rows,  // cycles of a sum down a column
    parameter int unsigned Fill = Rows,   // the same from its first product on
    parameter int unsigned AccumulatorRows = 64,
    parameter int unsigned TimeBits = 20,
    parameter int unsigned OutputStationary = 0  // 1: matmuls of that kind, too
) (
    input logic clk_i,
    input logic clear_i,
    input logic [TimeBits-1:0] now_i,
    // Head of the queue.
    input logic valid_i,
    input logic [3:0] missing_i,  // tokens, by giver
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    output logic pop_o,
    output logic quiet_o,  // no matmul in flight
    output logic done_o,   // an instruction ends with this cycle
    output logic [3:0] give_o,
    // Shadow weights.
    input logic weights_full_i,
    input logic weights_busy_i,
    output logic swap_o,  // the matmul that starts takes them
    input logic [15:0] active_rows_i,
    input logic [15:0] active_columns_i,
    // The oldest tile of the FIFO, where an output-stationary matmul may start with it.
    input logic stream_ready_i,
    input logic [15:0] tile_rows_i,
    input logic [15:0] tile_columns_i,
    output logic stream_o,  // the matmul that starts streams it
    // Leaves in this cycle: a descriptor, slot 0, a later slot, that of lane 0's next value.
    output logic set_stream_o,
    output logic set_taps_o,
    output logic start_o,
    output logic [$clog2(Rows)-1:0] start_lane_o,  // of slot 0
    output logic step_o,
    output logic restart_o,
    // The slot that left in the last cycle.
    output logic slot_used_o,  // it is there and no padding
    output logic [15:0] slot_rows_o,     // PEs that multiply in it
    output logic [15:0] slot_columns_o,
    output logic slot_accumulate_o,
    output logic slot_write_o,  // its sums, or those of a drain, go to the accumulators ...
    output logic [$clog2(Columns+1)-1:0] slot_write_columns_o,
    output logic [$clog2(AccumulatorRows)-1:0] slot_row_o,  // ... here
    output logic [3:0] slot_sum_o,  // {drain, last, first, stay}: see mmu_pe_dual
    output logic slot_transpose_o,
    output logic [$clog2(Rows)-1:0] slot_lane_o,
    output logic slot_swap_o,
    output logic slot_enters_o,                    // its position enters the lanes ...
    output logic [$clog2(Rows)-1:0] slot_entry_o,  // ... here
    // Class of this cycle.
    output logic issue_o,
    output logic padding_o,
    output logic [6:0] stall_o  // one-hot: drain, activations, output, dram, weights, accumulator,
                                // in-flight
);
  mmu_pkg::instruction_t instruction;
  mmu_pkg::matmul_t matmul;
  assign instruction = word_i;
  assign matmul = word_i;
  localparam int unsigned RowBits = $clog2(AccumulatorRows);
  localparam int unsigned LaneBits = $clog2(Rows);

  // The next lane of the ring.
  function automatic logic [LaneBits-1:0] after(input logic [LaneBits-1:0] lane);
    after = (lane == LaneBits'(Rows - 1)) ? '0 : lane + 1'b1;
  endfunction

  logic [7:0] opcode;
  logic is_matmul, accumulate, keep, transpose, abut, ready, hazard, full, empty, table_done;
  logic stationary, weights_ready, overlaps, drain_busy;
  logic [15:0] count;
  logic [16:0] slots, values_end;
  logic [LaneBits-1:0] count_lanes, lane_after;  // lane_after: that behind the last value's
  logic [LaneBits:0] lanes;
  logic [3:0] table_give;
  assign opcode = instruction.opcode;
  assign is_matmul = valid_i && (opcode == mmu_pkg::OP_MATMUL);
  assign stationary = (OutputStationary != 0) && matmul.flags.output_stationary;
  assign accumulate = matmul.flags.accumulate && !stationary;
  assign keep = matmul.flags.keep;
  assign transpose = matmul.flags.transpose;
  assign count = matmul.count;
  assign abut = matmul.flags.abut;
  logic [LaneBits-1:0] next_lane_q;  // where the next transposed stream begins
  // Unless the next matmul abuts, unused slots follow until the lanes are through, and at least
  // until all positions are under way.
  assign start_lane_o = transpose ? next_lane_q : '0;
  assign values_end = 17'(start_lane_o) + 17'(count);
  mmu_remainder #(
      .Modulus(Rows),
      .Bits(16)
  ) u_count_lanes (
      .value_i(count),
      .remainder_o(count_lanes)
  );
  assign lanes = (LaneBits + 1)'(start_lane_o) + (LaneBits + 1)'(count_lanes);
  assign lane_after = LaneBits'((lanes >= (LaneBits + 1)'(Rows)) ? lanes - (LaneBits + 1)'(Rows)
                                                                 : lanes);
  always_comb begin
    if (stationary || (transpose && !abut && (values_end <= 17'(Rows)))) slots = 17'(Rows);
    else if (!transpose || abut || (lane_after == '0)) slots = 17'(count);
    else slots = 17'(count) + 17'(Rows) - 17'(lane_after);
  end

  // The matmul that streams: slots and positions that have not left yet.
  logic [16:0] slots_left_q;
  logic [15:0] used_left_q;
  logic transpose_q, accumulate_q;
  logic [LaneBits-1:0] lane_q, entry_q;
  logic [LaneBits:0] entries_left_q;    // positions of a transposed stream that have not left yet
  logic [RowBits-1:0] row_q;
  // The slot that left in the last cycle.
  logic slot_used_q, slot_swap_q, slot_transpose_q, slot_accumulate_q, slot_enters_q;
  logic [LaneBits-1:0] slot_lane_q;
  logic [RowBits-1:0] slot_row_q;

  mmu_in_flight #(
      .Rows(Rows),
      .Columns(Columns),
      .Chain(Chain),
      .Fill(Fill),
      .TimeBits(TimeBits)
  ) u_in_flight (
      .clk_i,
      .clear_i,
      .now_i,
      .start_i(start_o),
      .slots_i(slots),
      .drain_slots_i(stationary ? TimeBits'(Rows) : '0),
      .count_i(count),
      .row_i(matmul.accumulator),
      .signal_i(instruction.signal),
      .full_o(full),
      .empty_o(empty),
      .ask_i(ready && accumulate),
      .hazard_o(overlaps),
      .give_o(table_give),
      .done_o(table_done)
  );

  assign step_o = slots_left_q != '0;
  assign ready = is_matmul && !step_o && (missing_i == '0);
  assign weights_ready = stationary ? stream_ready_i : keep || weights_full_i;
  assign hazard = overlaps || (drain_busy && !stationary);
  assign start_o = ready && !full && weights_ready && !hazard;
  assign restart_o = step_o && transpose_q && (lane_q == '0) && (used_left_q != '0);
  assign swap_o = start_o && !keep && !stationary;
  assign stream_o = start_o && stationary;
  assign pop_o = start_o || set_stream_o || set_taps_o;
  assign set_stream_o =
      valid_i && (opcode == mmu_pkg::OP_SET_STREAM) && (missing_i == '0) && empty;
  assign set_taps_o = valid_i && (opcode == mmu_pkg::OP_SET_TAPS) && (missing_i == '0) && empty;

  always_ff @(posedge clk_i) begin
    if (start_o) begin
      used_left_q <= (stationary ? tile_rows_i : count) - 16'd1;
      transpose_q <= transpose;
      accumulate_q <= accumulate;
      lane_q <= after(start_lane_o);
      entry_q <= start_lane_o;
      entries_left_q <= (LaneBits + 1)'(Rows - 1);
      row_q <= matmul.accumulator[RowBits-1:0] + 1'b1;
      slot_row_q <= matmul.accumulator[RowBits-1:0];
      slot_lane_q <= start_lane_o;
      slot_transpose_q <= transpose;
      slot_accumulate_q <= accumulate;
    end else if (step_o) begin
      if (used_left_q != '0) used_left_q <= used_left_q - 16'd1;
      if (entries_left_q != '0) entries_left_q <= entries_left_q - 1'b1;
      lane_q <= after(lane_q);
      row_q <= row_q + 1'b1;
      slot_row_q <= row_q;
      slot_lane_q <= lane_q;
      slot_transpose_q <= transpose_q;
      slot_accumulate_q <= accumulate_q;
    end
    slot_swap_q <= swap_o;
    slot_enters_q <= start_o || (step_o && (!transpose_q || (entries_left_q != '0)));
    if (clear_i) begin
      slots_left_q <= '0;
      used_left_q <= '0;
      transpose_q <= 1'b0;
      lane_q <= '0;
      entries_left_q <= '0;
      slot_used_q <= 1'b0;
      slot_swap_q <= 1'b0;
      slot_enters_q <= 1'b0;
      slot_transpose_q <= 1'b0;
      slot_lane_q <= '0;
      next_lane_q <= '0;
    end else begin
      cycle_has_one_class : assert ((issue_o ^ (^stall_o)) && ((stall_o & (stall_o - 7'd1)) == '0));
      waits_for_activations : cover (stall_o[1]);
      waits_for_output : cover (stall_o[2]);
      waits_for_dram : cover (stall_o[3]);
      waits_for_weights : cover (stall_o[4]);
      waits_for_accumulators : cover (stall_o[5]);
      waits_for_the_table : cover (stall_o[6]);
      values_abut : cover (start_o && transpose && (next_lane_q != '0));
      slots_are_left_unused : cover (padding_o);
      if (start_o) next_lane_q <= abut ? lane_after : '0;
      if (start_o) slots_left_q <= slots - 17'd1;
      else if (step_o) slots_left_q <= slots_left_q - 17'd1;
      slot_used_q <= start_o || (step_o && (used_left_q != '0));
    end
  end

  // The first reason that holds, in the order of the manual.
  always_comb begin
    stall_o = 7'd0;
    if (!issue_o) begin
      if (!is_matmul) stall_o[0] = 1'b1;
      else if (missing_i[mmu_pkg::UNIT_LOAD] || missing_i[mmu_pkg::UNIT_WEIGHTS]) stall_o[1] = 1'b1;
      else if (missing_i != '0) stall_o[2] = 1'b1;
      else if (!weights_ready && !weights_busy_i) stall_o[3] = 1'b1;
      else if (!weights_ready) stall_o[4] = 1'b1;
      else if (hazard) stall_o[5] = 1'b1;
      else stall_o[6] = 1'b1;
    end
  end

  assign issue_o = start_o || step_o;
  assign padding_o = step_o && (used_left_q == '0);
  assign quiet_o = empty;
  assign done_o = table_done || set_stream_o || set_taps_o;
  assign give_o = table_give |
                  ((set_stream_o || set_taps_o) ? instruction.signal : 4'b0000);
  assign slot_used_o = slot_used_q;
  assign slot_accumulate_o = slot_accumulate_q;
  assign slot_transpose_o = slot_transpose_q;
  assign slot_lane_o = slot_lane_q;
  assign slot_swap_o = slot_swap_q;
  assign slot_enters_o = slot_enters_q;
  assign slot_entry_o = entry_q;

  if (OutputStationary != 0) begin : gen_stationary
    // The output-stationary matmul that streams, and the slot of one that left in the last cycle.
    logic stationary_q, drains_q, slot_stay_q, slot_first_q, slot_last_q, last;
    logic [15:0] results_q, columns_q;
    logic drain_first, drain_moves, drain_write;
    logic [RowBits-1:0] drain_row;
    logic [$clog2(Columns+1)-1:0] drain_columns;
    assign last = step_o && stationary_q && (slots_left_q == 17'd1);
    mmu_drain #(
        .Rows(Rows),
        .Columns(Columns),
        .AccumulatorRows(AccumulatorRows)
    ) u_drain (
        .clk_i,
        .clear_i,
        .start_i(stream_o),
        .drain_i(matmul.flags.drain),
        .count_i(count[$clog2(Rows+1)-1:0]),
        .row_i(matmul.accumulator[RowBits-1:0]),
        .columns_i(tile_columns_i[$clog2(Columns+1)-1:0]),
        .last_i(last),
        .busy_o(drain_busy),
        .first_o(drain_first),
        .moves_o(drain_moves),
        .write_o(drain_write),
        .row_o(drain_row),
        .columns_o(drain_columns)
    );
    always_ff @(posedge clk_i) begin
      if (stream_o) begin
        drains_q <= matmul.flags.drain;
        results_q <= count;
        columns_q <= tile_columns_i;
      end
      if (clear_i) begin
        stationary_q <= 1'b0;
        slot_stay_q <= 1'b0;
        slot_first_q <= 1'b0;
        slot_last_q <= 1'b0;
      end else begin
        if (start_o) stationary_q <= stationary;
        slot_stay_q <= stream_o || (step_o && stationary_q);
        slot_first_q <= stream_o && !matmul.flags.accumulate;
        slot_last_q <= last && drains_q;
        sums_leave_where_no_others_do : assert (!(drain_write && slot_used_q && !slot_stay_q));
        drain_makes_a_matmul_wait : cover (ready && drain_busy && !stationary);
        chains_follow_each_other : cover (stream_o && drain_busy);
      end
    end
    assign slot_rows_o = slot_stay_q ? results_q : active_rows_i;
    assign slot_columns_o = slot_stay_q ? columns_q : active_columns_i;
    assign slot_write_o = (slot_used_q && !slot_stay_q) || drain_write;
    assign slot_write_columns_o = drain_write ? drain_columns
                                              : active_columns_i[$clog2(Columns+1)-1:0];
    assign slot_row_o = drain_write ? drain_row : slot_row_q;
    assign slot_sum_o = {drain_first, slot_last_q, slot_first_q, slot_stay_q || drain_moves};
  end else begin : gen_weight_stationary
    logic unused;
    assign unused = ^{tile_rows_i, tile_columns_i, stream_ready_i};
    assign drain_busy = 1'b0;
    assign slot_rows_o = active_rows_i;
    assign slot_columns_o = active_columns_i;
    assign slot_write_o = slot_used_q;
    assign slot_write_columns_o = active_columns_i[$clog2(Columns+1)-1:0];
    assign slot_row_o = slot_row_q;
    assign slot_sum_o = '0;
  end
endmodule
