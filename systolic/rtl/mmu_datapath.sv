// The compute unit's data path: stream walker, unified buffer, transposer, array, accumulators.
// Slot p of a matmul that starts in cycle s reaches lane r in s + p + 1 + r, PE (r, c) in
// s + p + 3 + r * PeLatency + c, and the accumulators of column c in s + p + Fill + 3 + c.
// SPDX-License-Identifier: Apache-2.0
module mmu_datapath #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned PeKind = 0,
    parameter int unsigned ElementBits = 16,
    parameter int unsigned PeLatency = 1,
    parameter int unsigned Fill = Rows,  // cycles from a column's first product to its sum
    parameter int unsigned BufferRows = 256,
    parameter int unsigned AccumulatorRows = 128,
    parameter int unsigned ArrayKind = 0,  // 0: blocks that simulate fast, 1: a grid of PEs, banks
    parameter int unsigned OutputStationary = 0  // 1: both dataflows
) (
    input logic clk_i,
    input logic clear_i,
    input logic in_flight_i,  // some slot is on its way
    // Leaves the control in this cycle. Head of the compute queue.
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    input logic set_stream_i,
    input logic set_taps_i,
    input logic start_i,
    input logic [$clog2(Rows)-1:0] start_lane_i,
    input logic step_i,
    input logic restart_i,
    // The slot that left in the last cycle.
    input logic slot_write_i,  // its sums, or those of a drain, go to the accumulators
    input logic slot_accumulate_i,
    input logic [$clog2(AccumulatorRows)-1:0] slot_row_i,
    input logic [$clog2(Columns+1)-1:0] slot_write_columns_i,
    input logic [3:0] slot_sum_i,  // {drain, last, first, stay}
    input logic slot_transpose_i,
    input logic [$clog2(Rows)-1:0] slot_lane_i,
    input logic slot_swap_i,
    input logic slot_enters_i,
    input logic [$clog2(Rows)-1:0] slot_entry_i,
    // Rows for the buffer from the load and the store unit, as mmu_fill takes them.
    input logic load_i,
    input logic [$clog2(BufferRows)-1:0] load_row_i,
    input logic [3:0] load_log2_group_i,
    input logic [Rows*ElementBits-1:0] load_data_i,
    input logic store_i,
    output logic store_grant_o,
    input logic [$clog2(BufferRows)-1:0] store_row_i,
    input logic [3:0] store_log2_group_i,
    input logic [15:0] store_columns_i,
    input logic [Rows*ElementBits-1:0] store_data_i,
    // Weights on their way in.
    input logic moving_i,
    input logic [Rows-1:0] capture_i,
    input logic [Columns*(ElementBits+1)-1:0] weight_i,
    // Reads of the store unit.
    input logic read_i,
    input logic [$clog2(AccumulatorRows)-1:0] read_row_i,
    output logic [Columns*32-1:0] read_data_o
);
  localparam int unsigned BufferBits = $clog2(BufferRows);

  logic [15:0] y, x, in_height, in_width;
  logic [BufferBits-1:0] address;
  mmu_stream #(
      .AddressBits(BufferBits)
  ) u_stream (
      .clk_i,
      .word_i,
      .set_i(set_stream_i),
      .start_i,
      .step_i,
      .y_o(y),
      .x_o(x),
      .address_o(address),
      .in_height_o(in_height),
      .in_width_o(in_width)
  );

  logic buffer_write;
  logic [BufferBits-1:0] buffer_row;
  logic [Rows*ElementBits-1:0] buffer_data;
  mmu_fill #(
      .Rows(Rows),
      .BufferRows(BufferRows),
      .ElementBits(ElementBits)
  ) u_fill (
      .load_i,
      .load_row_i,
      .load_log2_group_i,
      .load_data_i,
      .store_i,
      .store_grant_o,
      .store_row_i,
      .store_log2_group_i,
      .store_columns_i,
      .store_data_i,
      .write_o(buffer_write),
      .write_row_o(buffer_row),
      .write_data_o(buffer_data)
  );

  logic [Rows*ElementBits-1:0] lanes, row_act, act;
  logic [Rows-1:0] row_swap, array_swap;
  if (ArrayKind == 0) begin : gen_fast_buffer
    mmu_buffer #(
        .Rows(Rows),
        .BufferRows(BufferRows),
        .ElementBits(ElementBits)
    ) u_buffer (
        .clk_i,
        .enable_i(in_flight_i),
        .write_i(buffer_write),
        .write_row_i(buffer_row),
        .write_data_i(buffer_data),
        .word_i,
        .set_i(set_taps_i),
        .start_i,
        .start_lane_i,
        .restart_i,
        .enters_i(slot_enters_i),
        .entry_i(slot_entry_i),
        .y_i(y),
        .x_i(x),
        .address_i(address),
        .in_height_i(in_height),
        .in_width_i(in_width),
        .data_o(lanes)
    );
  end else begin : gen_banks_buffer
    mmu_buffer_banks #(
        .Rows(Rows),
        .BufferRows(BufferRows),
        .ElementBits(ElementBits)
    ) u_buffer (
        .clk_i,
        .enable_i(in_flight_i),
        .write_i(buffer_write),
        .write_row_i(buffer_row),
        .write_data_i(buffer_data),
        .word_i,
        .set_i(set_taps_i),
        .start_i,
        .start_lane_i,
        .restart_i,
        .enters_i(slot_enters_i),
        .entry_i(slot_entry_i),
        .y_i(y),
        .x_i(x),
        .address_i(address),
        .in_height_i(in_height),
        .in_width_i(in_width),
        .data_o(lanes)
    );
  end
  mmu_transposer #(
      .Rows(Rows),
      .ElementBits(ElementBits)
  ) u_transposer (
      .clk_i,
      .clear_i,
      .enable_i(in_flight_i),
      .transpose_i(slot_transpose_i),
      .lane_i(slot_lane_i),
      .swap_i(slot_swap_i),
      .data_i(lanes),
      .act_o(row_act),
      .swap_o(row_swap)
  );
  mmu_skew #(
      .Rows(Rows),
      .ElementBits(ElementBits),
      .Step(PeLatency - 1)
  ) u_skew (
      .clk_i,
      .enable_i(in_flight_i),
      .act_i(row_act),
      .swap_i(row_swap),
      .act_o(act),
      .swap_o(array_swap)
  );

  logic [Columns*32-1:0] psum_top, psum_bottom;
  logic [4*Rows-1:0] sum_token;
  if (OutputStationary != 0) begin : gen_tokens
    mmu_sum_tokens #(
        .Rows(Rows)
    ) u_tokens (
        .clk_i,
        .clear_i,
        .enable_i(in_flight_i),
        .stay_i(slot_sum_i[0]),
        .first_i(slot_sum_i[1]),
        .last_i(slot_sum_i[2]),
        .drain_i(slot_sum_i[3]),
        .sum_o(sum_token)
    );
  end else begin : gen_no_tokens
    logic unused;
    assign unused = ^{slot_sum_i, sum_token};
    assign sum_token = '0;
  end

  if ((OutputStationary != 0) && (ArrayKind == 0)) begin : gen_fast_dual
    mmu_array_dual #(
        .Rows(Rows),
        .Columns(Columns),
        .PeKind(PeKind),
        .ElementBits(ElementBits)
    ) u_array (
        .clk_i,
        .enable_i(in_flight_i),
        .moving_i,
        .act_i(act),
        .swap_i(array_swap),
        .sum_i(sum_token),
        .capture_i,
        .weight_i,
        .psum_i(psum_top),
        .psum_o(psum_bottom)
    );
  end else if (OutputStationary != 0) begin : gen_grid_dual
    mmu_array_dual_grid #(
        .Rows(Rows),
        .Columns(Columns),
        .PeKind(PeKind),
        .ElementBits(ElementBits)
    ) u_array (
        .clk_i,
        .enable_i(in_flight_i),
        .moving_i,
        .act_i(act),
        .swap_i(array_swap),
        .sum_i(sum_token),
        .capture_i,
        .weight_i,
        .psum_i(psum_top),
        .psum_o(psum_bottom)
    );
  end else if (ArrayKind == 0) begin : gen_fast
    mmu_array #(
        .Rows(Rows),
        .Columns(Columns),
        .PeKind(PeKind),
        .ElementBits(ElementBits),
        .Latency(PeLatency)
    ) u_array (
        .clk_i,
        .enable_i(in_flight_i),
        .moving_i,
        .act_i(act),
        .swap_i(array_swap),
        .capture_i,
        .weight_i,
        .psum_i(psum_top),
        .psum_o(psum_bottom)
    );
  end else begin : gen_grid
    mmu_array_grid #(
        .Rows(Rows),
        .Columns(Columns),
        .PeKind(PeKind),
        .ElementBits(ElementBits),
        .Latency(PeLatency)
    ) u_array (
        .clk_i,
        .enable_i(in_flight_i),
        .moving_i,
        .act_i(act),
        .swap_i(array_swap),
        .capture_i,
        .weight_i,
        .psum_i(psum_top),
        .psum_o(psum_bottom)
    );
  end

  if (ArrayKind == 0) begin : gen_fast_sums
    mmu_accumulators #(
        .Rows(Rows),
        .Columns(Columns),
        .AccumulatorRows(AccumulatorRows),
        .Lead(Fill - Rows * PeLatency),
        .Fill(Fill)
    ) u_accumulators (
        .clk_i,
        .enable_i(in_flight_i),
        .valid_i(slot_write_i),
        .accumulate_i(slot_accumulate_i),
        .columns_i(slot_write_columns_i),
        .row_i(slot_row_i),
        .psum_o(psum_top),
        .psum_i(psum_bottom),
        .read_i,
        .read_row_i,
        .data_o(read_data_o)
    );
  end else begin : gen_banks_sums
    mmu_accumulators_banks #(
        .Rows(Rows),
        .Columns(Columns),
        .AccumulatorRows(AccumulatorRows),
        .Lead(Fill - Rows * PeLatency),
        .Fill(Fill)
    ) u_accumulators (
        .clk_i,
        .enable_i(in_flight_i),
        .valid_i(slot_write_i),
        .accumulate_i(slot_accumulate_i),
        .columns_i(slot_write_columns_i),
        .row_i(slot_row_i),
        .psum_o(psum_top),
        .psum_i(psum_bottom),
        .read_i,
        .read_row_i,
        .data_o(read_data_o)
    );
  end
endmodule
