// The MMU: a systolic array with its memories, address generators and DMA engines. All cycles are
// those of the section "Time" of its manual, docs/reference/mmu.md.
// SPDX-License-Identifier: Apache-2.0
module mmu_top #(
    `include "mmu_parameters.svh"
) (
    input logic clk_i,
    input logic rst_ni,   // synchronous, and leaves the memories unchanged
    input logic start_i,  // the next cycle is cycle 0 of a program
    input logic [1:0] weight_scheme_i,  // 0: pass-through, 1: per column, 2: drained. constant
    output logic [2:0] status_o,
    // The program: a word per cycle with both valid and ready high.
    input logic instruction_valid_i,
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] instruction_i,
    output logic instruction_ready_o,
    // Trace, by unit: starts an instruction in this cycle, ends its oldest one with this cycle.
    output logic [3:0] trace_start_o,
    output logic [3:0] trace_end_o,
    // Performance counters: mmu_counters lists them.
    input logic [4:0] counter_i,
    output logic [63:0] counter_o,
    `include "mmu_dram_ports.svh"
);
  localparam int unsigned ElementBits = (PeKind == 0) ? 16 : 8;
  localparam int unsigned TimeBits = 20;
  // Cycles of a sum down a column, without and with its first product's own stage.
  localparam int unsigned Chain = Rows * PeLatency;
  localparam int unsigned Fill = (PeLatency == 1) ? Chain : Chain + 1;
  localparam int unsigned BufferBits = $clog2(BufferRows), RowBits = Rows * ElementBits;
  localparam int unsigned AccumulatorBits = $clog2(AccumulatorRows);
  localparam int unsigned LOAD = mmu_pkg::UNIT_LOAD;
  localparam int unsigned WEIGHTS = mmu_pkg::UNIT_WEIGHTS;
  localparam int unsigned COMPUTE = mmu_pkg::UNIT_COMPUTE;
  localparam int unsigned STORE = mmu_pkg::UNIT_STORE;

  if ((Rows < 2) || (Columns < 2) || ((BufferRows & (BufferRows - 1)) != 0) ||
      ((AccumulatorRows & (AccumulatorRows - 1)) != 0) || (AccumulatorRows > 32768) ||
      ((VectorRows & (VectorRows - 1)) != 0) || (VectorRows == 1) || (PeLatency < 1) ||
      (PeLatency > (((OutputStationary != 0) || (VectorRows != 0)) ? 1 : 3))) begin : gen_parameters
    $error("mmu_top: rows of memories are powers of two; rows and columns at least 2; PeLatency ",
           "is 1 to 3, with both dataflows or a vector unit 1");
  end

  logic clear, running;
  logic [TimeBits-1:0] now_q;
  assign clear = !rst_ni || start_i;
  always_ff @(posedge clk_i) now_q <= clear ? '0 : now_q + 1'b1;

  // Dispatch, queues, tokens.
  logic [3:0] push, full, valid, pop, quiet, done, tokens;
  logic [15:0] give, wait_mask, missing;
  logic overflow, moved, loader_busy, take;
  mmu_pkg::instruction_t head_load, head_weights, head_compute, head_store;

  mmu_dispatch #(
      .Rows(Rows),
      .Columns(Columns),
      .AccumulatorRows(AccumulatorRows),
      .OutputStationary(OutputStationary),
      .VectorRows(VectorRows)
  ) u_dispatch (
      .clk_i,
      .rst_ni,
      .start_i,
      .instruction_valid_i,
      .instruction_i,
      .instruction_ready_o,
      .full_i(full),
      .push_o(push),
      .idle_i((valid == '0) && (quiet == '1) && !loader_busy),
      .overflow_i(overflow),
      .moved_i(moved),
      .running_o(running),
      .status_o
  );

  mmu_queue #(.Depth(QueueDepth)) u_queue_load (
      .clk_i, .clear_i(clear), .push_i(push[LOAD]), .word_i(instruction_i), .full_o(full[LOAD]),
      .pop_i(pop[LOAD]), .valid_o(valid[LOAD]), .word_o(head_load));
  mmu_queue #(.Depth(QueueDepth)) u_queue_weights (
      .clk_i, .clear_i(clear), .push_i(push[WEIGHTS]), .word_i(instruction_i),
      .full_o(full[WEIGHTS]), .pop_i(pop[WEIGHTS]), .valid_o(valid[WEIGHTS]),
      .word_o(head_weights));
  mmu_queue #(.Depth(QueueDepth)) u_queue_compute (
      .clk_i, .clear_i(clear), .push_i(push[COMPUTE]), .word_i(instruction_i),
      .full_o(full[COMPUTE]), .pop_i(pop[COMPUTE]), .valid_o(valid[COMPUTE]),
      .word_o(head_compute));
  mmu_queue #(.Depth(QueueDepth)) u_queue_store (
      .clk_i, .clear_i(clear), .push_i(push[STORE]), .word_i(instruction_i), .full_o(full[STORE]),
      .pop_i(pop[STORE]), .valid_o(valid[STORE]), .word_o(head_store));

  assign wait_mask = {head_store.wait_mask, head_compute.wait_mask, head_weights.wait_mask,
                      head_load.wait_mask};
  mmu_tokens u_tokens (
      .clk_i, .clear_i(clear), .give_i(give), .wait_i(wait_mask), .pop_i(pop), .missing_o(missing),
      .overflow_o(overflow));
  for (genvar unit = 0; unit < 4; unit++) begin : gen_tokens
    assign tokens[unit] = missing[4*unit+:4] == '0;
  end

  logic load_grant, weights_grant, store_grant, operand_grant, fill_grant;
  assign load_grant = load_request_o && load_ready_i;
  assign weights_grant = weights_request_o && weights_ready_i;
  assign store_grant = store_request_o && store_ready_i;
  assign operand_grant = operand_request_o && operand_ready_i;

  // Load unit.
  logic [BufferBits-1:0] load_row;
  logic [3:0] load_log2_group, store_log2_group;
  mmu_load #(
      .Rows(Rows),
      .BufferRows(BufferRows),
      .ElementBits(ElementBits)
  ) u_load (
      .clk_i,
      .clear_i(clear),
      .valid_i(valid[LOAD]),
      .tokens_i(tokens[LOAD]),
      .word_i(head_load),
      .pop_o(pop[LOAD]),
      .quiet_o(quiet[LOAD]),
      .done_o(done[LOAD]),
      .give_o(give[4*LOAD+:4]),
      .request_o(load_request_o),
      .request_address_o(load_address_o),
      .request_bytes_o(load_bytes_o),
      .grant_i(load_grant),
      .arrival_i(load_valid_i),
      .write_row_o(load_row),
      .write_log2_group_o(load_log2_group)
  );

  // Weights unit and loader.
  logic weights_moving, weights_full, swap, stream_ready, stream;
  logic [15:0] tile_rows, tile_columns, active_rows, active_columns, slot_rows, slot_columns;
  logic [Rows-1:0] capture;
  logic [Columns*(ElementBits+1)-1:0] weight;
  mmu_weight_path #(
      .Rows(Rows),
      .Columns(Columns),
      .Tiles(WeightTiles),
      .ElementBits(ElementBits),
      .PeLatency(PeLatency),
      .TimeBits(TimeBits),
      .ArrayKind(ArrayKind),
      .OutputStationary(OutputStationary)
  ) u_weight_path (
      .clk_i,
      .clear_i(clear),
      .now_i(now_q),
      .scheme_i(weight_scheme_i),
      .valid_i(valid[WEIGHTS]),
      .tokens_i(tokens[WEIGHTS]),
      .word_i(head_weights),
      .pop_o(pop[WEIGHTS]),
      .quiet_o(quiet[WEIGHTS]),
      .done_o(done[WEIGHTS]),
      .give_o(give[4*WEIGHTS+:4]),
      .request_o(weights_request_o),
      .request_address_o(weights_address_o),
      .request_bytes_o(weights_bytes_o),
      .grant_i(weights_grant),
      .arrival_i(weights_valid_i),
      .arrival_data_i(weights_data_i),
      .tile_rows_o(tile_rows),
      .tile_columns_o(tile_columns),
      .take_o(take),
      .moving_o(weights_moving),
      .capture_o(capture),
      .weight_o(weight),
      .swap_i(swap),
      .full_o(weights_full),
      .busy_o(loader_busy),
      .stream_ready_o(stream_ready),
      .stream_i(stream),
      .active_rows_o(active_rows),
      .active_columns_o(active_columns)
  );

  // Compute unit.
  logic set_stream, set_taps, start, step, restart, issue, padding;
  logic slot_used, slot_accumulate, slot_write, slot_transpose, slot_swap, slot_enters;
  logic [$clog2(Columns+1)-1:0] slot_write_columns;
  logic [AccumulatorBits-1:0] slot_row;
  logic [$clog2(Rows)-1:0] start_lane, slot_lane, slot_entry;
  logic [6:0] stall;
  logic [3:0] slot_sum;
  mmu_compute #(
      .Rows(Rows),
      .Columns(Columns),
      .Chain(Chain),
      .Fill(Fill),
      .AccumulatorRows(AccumulatorRows),
      .TimeBits(TimeBits),
      .OutputStationary(OutputStationary)
  ) u_compute (
      .clk_i,
      .clear_i(clear),
      .now_i(now_q),
      .valid_i(valid[COMPUTE]),
      .missing_i(missing[4*COMPUTE+:4]),
      .word_i(head_compute),
      .pop_o(pop[COMPUTE]),
      .quiet_o(quiet[COMPUTE]),
      .done_o(done[COMPUTE]),
      .give_o(give[4*COMPUTE+:4]),
      .weights_full_i(weights_full),
      .weights_busy_i(loader_busy),
      .swap_o(swap),
      .active_rows_i(active_rows),
      .active_columns_i(active_columns),
      .stream_ready_i(stream_ready),
      .tile_rows_i(tile_rows),
      .tile_columns_i(tile_columns),
      .stream_o(stream),
      .set_stream_o(set_stream),
      .set_taps_o(set_taps),
      .start_o(start),
      .start_lane_o(start_lane),
      .step_o(step),
      .restart_o(restart),
      .slot_used_o(slot_used),
      .slot_rows_o(slot_rows),
      .slot_columns_o(slot_columns),
      .slot_accumulate_o(slot_accumulate),
      .slot_write_o(slot_write),
      .slot_write_columns_o(slot_write_columns),
      .slot_row_o(slot_row),
      .slot_sum_o(slot_sum),
      .slot_transpose_o(slot_transpose),
      .slot_lane_o(slot_lane),
      .slot_swap_o(slot_swap),
      .slot_enters_o(slot_enters),
      .slot_entry_o(slot_entry),
      .issue_o(issue),
      .padding_o(padding),
      .stall_o(stall)
  );
  logic accumulator_read, store_pool, store_fills;
  mmu_vector_pkg::actions_t vector_actions;
  logic [AccumulatorBits-1:0] accumulator_read_row;
  logic [15:0] store_columns;
  logic [Columns*32-1:0] accumulator_data;
  mmu_datapath #(
      .Rows(Rows),
      .Columns(Columns),
      .PeKind(PeKind),
      .ElementBits(ElementBits),
      .PeLatency(PeLatency),
      .Fill(Fill),
      .BufferRows(BufferRows),
      .AccumulatorRows(AccumulatorRows),
      .ArrayKind(ArrayKind),
      .OutputStationary(OutputStationary)
  ) u_datapath (
      .clk_i,
      .clear_i(clear),
      .in_flight_i(!quiet[COMPUTE]),
      .word_i(head_compute),
      .set_stream_i(set_stream),
      .set_taps_i(set_taps),
      .start_i(start),
      .start_lane_i(start_lane),
      .step_i(step),
      .restart_i(restart),
      .slot_write_i(slot_write),
      .slot_accumulate_i(slot_accumulate),
      .slot_row_i(slot_row),
      .slot_write_columns_i(slot_write_columns),
      .slot_sum_i(slot_sum),
      .slot_transpose_i(slot_transpose),
      .slot_lane_i(slot_lane),
      .slot_swap_i(slot_swap),
      .slot_enters_i(slot_enters),
      .slot_entry_i(slot_entry),
      .load_i(load_valid_i),
      .load_row_i(load_row),
      .load_log2_group_i(load_log2_group),
      .load_data_i,
      .store_i(store_fills),
      .store_grant_o(fill_grant),
      .store_row_i(store_address_o[BufferBits-1:0]),
      .store_log2_group_i(store_log2_group),
      .store_columns_i(store_columns),
      .store_data_i(RowBits'(store_data_o)),
      .moving_i(weights_moving),
      .capture_i(capture),
      .weight_i(weight),
      .read_i(accumulator_read),
      .read_row_i(accumulator_read_row),
      .read_data_o(accumulator_data)
  );

  // Store unit.
  mmu_store #(
      .Columns(Columns),
      .AccumulatorRows(AccumulatorRows),
      .PeKind(PeKind),
      .PeLatency(PeLatency),
      .VectorRows(VectorRows)
  ) u_store (
      .clk_i,
      .clear_i(clear),
      .valid_i(valid[STORE]),
      .tokens_i(tokens[STORE]),
      .word_i(head_store),
      .pop_o(pop[STORE]),
      .quiet_o(quiet[STORE]),
      .done_o(done[STORE]),
      .give_o(give[4*STORE+:4]),
      .request_o(store_request_o),
      .buffer_request_o(store_fills),
      .buffer_log2_group_o(store_log2_group),
      .request_address_o(store_address_o),
      .request_bytes_o(store_bytes_o),
      .request_data_o(store_data_o),
      .grant_i(store_grant || fill_grant),
      .operand_request_o,
      .operand_address_o,
      .operand_bytes_o,
      .operand_grant_i(operand_grant),
      .operand_arrival_i(operand_valid_i),
      .operand_data_i,
      .read_o(accumulator_read),
      .read_row_o(accumulator_read_row),
      .read_data_i(accumulator_data),
      .vector_actions_o(vector_actions),
      .columns_o(store_columns),
      .pool_o(store_pool)
  );

  mmu_counters #(
      .Rows(Rows),
      .Columns(Columns),
      .VectorRows(VectorRows)
  ) u_counters (
      .clk_i, .start_i, .running_i(running),
      .halt_i(instruction_valid_i && instruction_ready_o && (push == '0)),
      .issue_i(issue),
      .padding_i(padding),
      .stall_i(stall),
      .slot_used_i(slot_used),
      .slot_accumulate_i(slot_accumulate),
      .slot_rows_i(slot_rows),
      .slot_columns_i(slot_columns),
      .slot_write_i(slot_write),
      .slot_write_columns_i(slot_write_columns),
      .buffer_write_i(load_valid_i || fill_grant),
      .store_grant_i(store_grant || fill_grant),
      .store_columns_i(store_columns),
      .store_pool_i(store_pool),
      .vector_i(vector_actions),
      .tile_i(take),
      .dram_bytes_i({(store_grant ? store_bytes_o : 16'd0) +
                         (operand_grant ? operand_bytes_o : 16'd0), 16'd0,
                     weights_grant ? weights_bytes_o : 16'd0, load_grant ? load_bytes_o : 16'd0}),
      .push_i(push),
      .index_i(counter_i),
      .value_o(counter_o)
  );

  assign moved = (push != '0) || (pop != '0) || (done != '0) || issue || loader_busy ||
                 load_grant || weights_grant || store_grant || fill_grant || operand_grant ||
                 load_valid_i || weights_valid_i || operand_valid_i || vector_actions.write;
  assign {trace_end_o, trace_start_o} = {done, pop};
endmodule
