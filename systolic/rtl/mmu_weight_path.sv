// The way of weights from DRAM to the top of the array: the weights unit with its FIFO, and the
// loader, which moves tiles on. Cycles are those of mmu_weights and mmu_loader.
// SPDX-License-Identifier: Apache-2.0
module mmu_weight_path #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned Tiles = 4,
    parameter int unsigned ElementBits = 16,
    parameter int unsigned PeLatency = 1,
    parameter int unsigned TimeBits = 20,
    parameter int unsigned ArrayKind = 0,  // 0: a FIFO that simulates fast, 1: its banks
    parameter int unsigned OutputStationary = 0
) (
    input logic clk_i,
    input logic clear_i,
    input logic [TimeBits-1:0] now_i,
    input logic [1:0] scheme_i,  // 0: pass-through, 1: per column, 2: drained. constant
    // Head of the queue.
    input logic valid_i,
    input logic tokens_i,  // the head's tokens are there
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    output logic pop_o,
    output logic quiet_o,
    output logic done_o,  // an instruction ends with this cycle
    output logic [3:0] give_o,
    // DRAM port.
    output logic request_o,
    output logic [31:0] request_address_o,
    output logic [15:0] request_bytes_o,
    input logic grant_i,
    input logic arrival_i,
    input logic [Columns*ElementBits-1:0] arrival_data_i,
    // The oldest tile of the FIFO. The loader takes it in this cycle.
    output logic [15:0] tile_rows_o,
    output logic [15:0] tile_columns_o,
    output logic take_o,
    // To the array.
    output logic moving_o,
    output logic [Rows-1:0] capture_o,
    output logic [Columns*(ElementBits+1)-1:0] weight_o,
    // The matmul that takes the shadow weights.
    input logic swap_i,
    output logic full_o,
    output logic busy_o,
    // The output-stationary matmul that streams the oldest tile.
    output logic stream_ready_o,
    input logic stream_i,
    // Shape of the active tile: from the cycle after the swap on.
    output logic [15:0] active_rows_o,
    output logic [15:0] active_columns_o
);
  logic tile, tile_stream, read_enabled;
  logic [$clog2(Tiles*Rows)-1:0] tile_row, read_row;
  mmu_weights #(
      .Rows(Rows),
      .Columns(Columns),
      .Tiles(Tiles),
      .ElementBits(ElementBits),
      .TimeBits(TimeBits),
      .ArrayKind(ArrayKind)
  ) u_weights (
      .clk_i,
      .clear_i,
      .now_i,
      .valid_i,
      .tokens_i,
      .word_i,
      .pop_o,
      .quiet_o,
      .done_o,
      .give_o,
      .request_o,
      .request_address_o,
      .request_bytes_o,
      .grant_i,
      .arrival_i,
      .arrival_data_i,
      .tile_o(tile),
      .tile_row_o(tile_row),
      .tile_rows_o,
      .tile_columns_o,
      .tile_stream_o(tile_stream),
      .take_i(take_o),
      .moving_i(moving_o),
      .read_row_i(read_row),
      .read_enabled_i(read_enabled),
      .weight_o
  );
  mmu_loader #(
      .Rows(Rows),
      .Columns(Columns),
      .Tiles(Tiles),
      .PeLatency(PeLatency),
      .OutputStationary(OutputStationary)
  ) u_loader (
      .clk_i,
      .clear_i,
      .scheme_i,
      .tile_i(tile),
      .tile_stream_i(tile_stream),
      .tile_row_i(tile_row),
      .tile_rows_i(tile_rows_o),
      .tile_columns_i(tile_columns_o),
      .take_o,
      .moving_o,
      .read_row_o(read_row),
      .read_enabled_o(read_enabled),
      .capture_o,
      .swap_i,
      .full_o,
      .busy_o,
      .stream_ready_o,
      .stream_i,
      .active_rows_o,
      .active_columns_o
  );
endmodule
