// The weights unit: DRAM to weight FIFO, one request per tile row, and the FIFO's slots: taken by
// the pop of a WeightLoad, filled by the arrival of its last row, read by the loader and given back
// Rows + Columns cycles after the loader's start.
// SPDX-License-Identifier: Apache-2.0
module mmu_weights #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned Tiles = 4,
    parameter int unsigned ElementBits = 16,
    parameter int unsigned TimeBits = 20,
    parameter int unsigned ArrayKind = 0  // 0: a FIFO that simulates fast, 1: its banks
) (
    input logic clk_i,
    input logic clear_i,
    input logic [TimeBits-1:0] now_i,
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
    // The loader takes the oldest tile.
    output logic tile_o,
    output logic [$clog2(Tiles*Rows)-1:0] tile_row_o,  // its first row in the FIFO
    output logic [15:0] tile_rows_o,
    output logic [15:0] tile_columns_o,
    output logic tile_stream_o,  // an output-stationary matmul streams it
    input logic take_i,
    // The loader's reads.
    input logic moving_i,
    input logic [$clog2(Tiles*Rows)-1:0] read_row_i,
    input logic read_enabled_i,
    output logic [Columns*(ElementBits+1)-1:0] weight_o
);
  mmu_pkg::weight_load_t weight_load;
  assign weight_load = word_i;
  localparam int unsigned RowBits = $clog2(Tiles * Rows);
  localparam int unsigned SlotBits = (Tiles > 1) ? $clog2(Tiles) : 1;
  localparam int unsigned CountBits = $clog2(Tiles + 1);
  localparam int unsigned TagBits = 20;  // {columns, signal}
  localparam logic [SlotBits-1:0] LAST = SlotBits'(Tiles - 1);

  logic ready, last, release_slot;
  logic [RowBits-1:0] arrival_row;
  logic [TagBits-1:0] tag;
  logic [15:0] columns;

  logic [15:0] rows_q[Tiles];
  logic [15:0] columns_q[Tiles];
  logic [Tiles-1:0] stream_q;
  logic [TimeBits-1:0] release_q[Tiles];
  logic [SlotBits-1:0] write_q, read_q, free_q;
  logic [RowBits-1:0] write_row_q, read_row_q;
  logic [CountBits-1:0] taken_q, there_q, leaving_q;

  assign columns = weight_load.columns;
  assign pop_o = valid_i && tokens_i && ready && (taken_q != CountBits'(Tiles));

  mmu_reader #(
      .RowBits(RowBits),
      .TagBits(TagBits)
  ) u_reader (
      .clk_i,
      .clear_i,
      .start_i(pop_o),
      .address_i(weight_load.address),
      .pitch_i(weight_load.pitch),
      .bytes_i((ElementBits == 16) ? columns << 1 : columns),
      .units_i(32'd1),
      .lines_i(32'(weight_load.rows)),
      .row_i(write_row_q),
      .row_pitch_i(RowBits'(1)),
      .tag_i({columns, weight_load.signal}),
      .ready_o(ready),
      .quiet_o,
      .request_o,
      .request_address_o,
      .request_bytes_o,
      .grant_i,
      .arrival_i,
      .arrival_row_o(arrival_row),
      .arrival_tag_o(tag),
      .arrival_last_o(last)
  );
  assign done_o = arrival_i && last;
  assign give_o = done_o ? tag[3:0] : 4'b0000;

  if (ArrayKind == 0) begin : gen_fast
    mmu_weight_fifo #(
        .Rows(Rows),
        .Columns(Columns),
        .Tiles(Tiles),
        .ElementBits(ElementBits)
    ) u_fifo (
        .clk_i,
        .write_i(arrival_i),
        .write_row_i(arrival_row),
        .write_columns_i(tag[19:4]),
        .write_data_i(arrival_data_i),
        .moving_i,
        .read_row_i,
        .read_enabled_i,
        .weight_o
    );
  end else begin : gen_banks
    mmu_weight_fifo_banks #(
        .Rows(Rows),
        .Columns(Columns),
        .Tiles(Tiles),
        .ElementBits(ElementBits)
    ) u_fifo (
        .clk_i,
        .write_i(arrival_i),
        .write_row_i(arrival_row),
        .write_columns_i(tag[19:4]),
        .write_data_i(arrival_data_i),
        .moving_i,
        .read_row_i,
        .read_enabled_i,
        .weight_o
    );
  end

  assign release_slot = (leaving_q != '0) && (release_q[free_q] == now_i);
  always_ff @(posedge clk_i) begin
    if (pop_o) begin
      rows_q[write_q] <= weight_load.rows;
      columns_q[write_q] <= columns;
      stream_q[write_q] <= weight_load.flags.stream;
    end
    if (take_i) release_q[read_q] <= now_i + TimeBits'(Rows + Columns - 1);
    if (clear_i) begin
      write_q <= '0;
      write_row_q <= '0;
      read_q <= '0;
      read_row_q <= '0;
      free_q <= '0;
      taken_q <= '0;
      there_q <= '0;
      leaving_q <= '0;
    end else begin
      if (pop_o) begin
        write_q <= (write_q == LAST) ? '0 : write_q + 1'b1;
        write_row_q <= (write_q == LAST) ? '0 : write_row_q + RowBits'(Rows);
      end
      if (take_i) begin
        read_q <= (read_q == LAST) ? '0 : read_q + 1'b1;
        read_row_q <= (read_q == LAST) ? '0 : read_row_q + RowBits'(Rows);
      end
      if (release_slot) free_q <= (free_q == LAST) ? '0 : free_q + 1'b1;
      taken_q <= taken_q + CountBits'(pop_o) - CountBits'(release_slot);
      there_q <= there_q + CountBits'(done_o) - CountBits'(take_i);
      leaving_q <= leaving_q + CountBits'(take_i) - CountBits'(release_slot);
    end
  end

  assign tile_o = there_q != '0;
  assign tile_row_o = read_row_q;
  assign tile_rows_o = rows_q[read_q];
  assign tile_columns_o = columns_q[read_q];
  assign tile_stream_o = stream_q[read_q];
endmodule
