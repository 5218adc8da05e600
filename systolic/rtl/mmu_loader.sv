// The loader: moves tiles from the weight FIFO into the array's shadow weights, always Rows rows,
// top row first. A weight passes down its column at a row per cycle. The capture token that keeps
// row r's weight in row r goes down at half that speed. A tile that an output-stationary matmul
// streams waits for that matmul's start. It moves in the cycles after it, and no row keeps it.
// SPDX-License-Identifier: Apache-2.0
module mmu_loader #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned Tiles = 4,
    parameter int unsigned PeLatency = 1,
    parameter int unsigned OutputStationary = 0
) (
    input logic clk_i,
    input logic clear_i,
    input logic [1:0] scheme_i,  // 0: pass-through, 1: per column, 2: drained. constant
    // The oldest tile of the FIFO.
    input logic tile_i,
    input logic tile_stream_i,
    input logic [$clog2(Tiles*Rows)-1:0] tile_row_i,
    input logic [15:0] tile_rows_i,
    input logic [15:0] tile_columns_i,
    output logic take_o,  // starts moving it in this cycle
    // Reads of the FIFO, column 0's cycle.
    output logic moving_o,
    output logic [$clog2(Tiles*Rows)-1:0] read_row_o,
    output logic read_enabled_o,
    // Tokens for the PEs of column 0, by row.
    output logic [Rows-1:0] capture_o,
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
  localparam int unsigned RowBits = $clog2(Tiles * Rows);
  localparam int unsigned TimerBits = 11;
  localparam int unsigned Chain = Rows * PeLatency;
  // Down the rows a swap takes PeLatency cycles each, a capture two. So a swap behind the capture
  // may follow at once where it is the slower one, otherwise when the last row's weights are on
  // their way. A capture behind the swap must wait where it is the faster one.
  localparam int unsigned LoadedAfter = (PeLatency == 1) ? Rows : 1;
  localparam int unsigned Behind = (PeLatency == 3) ? Rows - 1 : 0;
  logic [15:0] rows_left_q, enabled_left_q;
  logic [RowBits-1:0] row_q;
  logic occupied_q, full_q;
  logic [TimerBits-1:0] wait_q, moving_q, free_after;
  logic [2*Rows-2:0] capture_q;
  logic [15:0] shadow_rows_q, shadow_columns_q, active_rows_q, active_columns_q;

  // From the swap to the shadow weights' being free again, less one.
  always_comb begin
    unique case (scheme_i)
      2'd0: free_after = TimerBits'(Behind);
      2'd1: free_after = TimerBits'(Chain - 1);
      default: free_after = TimerBits'(Chain + Columns - 1);
    endcase
  end

  logic streams, stream_q, loads;  // this tile, or the one that is taken now
  assign streams = (OutputStationary != 0) && tile_stream_i;
  assign loads = tile_i && !streams && (rows_left_q == '0) && !occupied_q && (wait_q == '0);
  assign take_o = loads || stream_q;
  assign stream_ready_o = tile_i && streams && (rows_left_q <= 16'd1);
  assign busy_o = take_o || (rows_left_q != '0);
  assign moving_o = take_o || (moving_q != '0);
  assign read_row_o = take_o ? tile_row_i : row_q;
  assign read_enabled_o = take_o || (enabled_left_q != '0);

  always_ff @(posedge clk_i) begin
    capture_q <= {capture_q[2*Rows-3:0], loads};
    if (take_o) begin
      row_q <= tile_row_i + 1'b1;
      enabled_left_q <= tile_rows_i - 16'd1;
      shadow_rows_q <= tile_rows_i;
      shadow_columns_q <= tile_columns_i;
      moving_q <= TimerBits'(2 * Rows + Columns);
    end else begin
      row_q <= row_q + 1'b1;
      if (enabled_left_q != '0) enabled_left_q <= enabled_left_q - 16'd1;
      if (moving_q != '0) moving_q <= moving_q - 1'b1;
    end
    if (swap_i) begin
      active_rows_q <= shadow_rows_q;
      active_columns_q <= shadow_columns_q;
    end
    if (clear_i) begin
      rows_left_q <= '0;
      enabled_left_q <= '0;
      moving_q <= '0;
      capture_q <= '0;
      occupied_q <= 1'b0;
      full_q <= 1'b0;
      wait_q <= '0;
      stream_q <= 1'b0;
    end else begin
      stream_q <= (OutputStationary != 0) && stream_i;
      if (take_o) rows_left_q <= 16'(Rows - 1);
      else if (rows_left_q != '0) rows_left_q <= rows_left_q - 16'd1;
      if (loads) occupied_q <= 1'b1;
      else if (swap_i) occupied_q <= 1'b0;
      if ((LoadedAfter == 1) ? loads : (occupied_q && (rows_left_q == 16'd1))) full_q <= 1'b1;
      else if (swap_i) full_q <= 1'b0;
      if (swap_i) wait_q <= free_after;
      else if (wait_q != '0) wait_q <= wait_q - 1'b1;
      swap_finds_weights : assert (!(swap_i && !full_q));
      full_weights_are_all_there : assert (
          (!full_q || occupied_q) &&
          ((rows_left_q == '0) || (LoadedAfter == 1) || !full_q));
      streams_find_their_tile : assert (!(stream_q && !(tile_i && streams && !occupied_q)));
      weights_wait_for_their_swap : cover (full_q && tile_i && !swap_i);
      tile_waits_for_the_shadow : cover (tile_i && !occupied_q && (wait_q != '0));
      tile_is_short : cover (take_o && (tile_rows_i < 16'(Rows)));
    end
  end

  assign full_o = full_q;
  assign active_rows_o = active_rows_q;
  assign active_columns_o = active_columns_q;
  for (genvar r = 0; r < Rows; r++) begin : gen_capture
    assign capture_o[r] = capture_q[2*r];
  end
endmodule
