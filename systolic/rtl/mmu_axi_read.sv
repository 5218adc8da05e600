// Serves a DRAM port that reads as an AXI4 master with 128 bits of data. Rows of consecutive
// requests share bursts and beats. A burst stays in an aligned block of MaxBeats beats, so it never
// crosses 4 KiB. While rows continue it, it waits until it has 64 aligned bytes. A row that nothing
// continues is on the address channel two cycles after its request. Rows come back in order, two
// cycles after their last beat.
// SPDX-License-Identifier: Apache-2.0
module mmu_axi_read #(
    parameter int unsigned RowBytes = 8,  // of the widest row, up to 1024
    parameter int unsigned Outstanding = 128,  // rows, a power of two
    parameter int unsigned MaxBeats = 16  // of a burst: a power of two, 2 to 256
) (
    input logic clk_i,
    input logic clear_i,
    // The machine's port.
    input logic request_i,
    input logic [31:0] address_i,
    input logic [15:0] bytes_i,
    output logic ready_o,
    output logic valid_o,
    output logic [RowBytes*8-1:0] data_o,  // bytes beyond the row have no meaning
    output logic busy_o,  // rows are outstanding
    output logic error_o,  // the memory reports an error
    // The next burst, which must wait while an earlier write to its block is on its way.
    output logic [27-$clog2(MaxBeats):0] next_o,  // its block
    input logic wait_i,
    // AXI4: AR and R. Addresses are multiples of 16.
    output logic arvalid_o,
    input logic arready_i,
    output logic [31:0] araddr_o,
    output logic [7:0] arlen_o,
    input logic rvalid_i,
    output logic rready_o,
    input logic [127:0] rdata_i,
    input logic [1:0] rresp_i
);
  localparam int unsigned BeatBits = $clog2(MaxBeats);
  localparam int unsigned ChunkBits = (BeatBits < 2) ? BeatBits : 2;  // 64 bytes
  localparam int unsigned PointerBits = $clog2(Outstanding);
  localparam int unsigned CountBits = PointerBits + 1;

  // Beats asked for that are not on the address channel yet: [first_q, last_q], if range_q.
  logic range_q;
  logic [27:0] first_q, last_q;
  logic [27:0] row_first, row_last, end_d;  // end_d: the last beat of the next burst
  logic continues, goes_on, more, can_send, send, accept;
  logic arvalid_q;
  logic [27:0] araddr_q;
  logic [7:0] length, arlen_q;

  // Rows on their way, a ring: {begins in the last beat of the row before, beats - 1, first byte}.
  logic [11:0] rows_q[Outstanding];
  logic [PointerBits-1:0] write_q, read_q;
  logic [CountBits-1:0] count_q;
  logic next_shares;
  logic [6:0] beats;
  logic [3:0] offset;

  // The beat that is taken apart, and the row that is put together.
  logic beat_q, step, row_ends, beat_ends, valid_q;
  logic [127:0] beat_data_q, rotated;
  logic [6:0] index_q;  // of the beat in the row
  logic [RowBytes*8-1:0] row_q;

  assign row_first = address_i[31:4];
  assign row_last = 28'((address_i + 32'(bytes_i) - 32'd1) >> 4);
  assign continues = range_q && ((row_first == last_q) || (row_first == last_q + 28'd1));
  assign more = first_q[27:BeatBits] != last_q[27:BeatBits];
  assign goes_on = accept && continues;
  always_comb begin
    end_d = last_q;
    if (more) end_d = {first_q[27:BeatBits], BeatBits'('1)};
    else if (goes_on) end_d = {last_q[27:ChunkBits], ChunkBits'(0)} - 28'd1;
  end
  assign can_send = range_q && (!arvalid_q || arready_i) && !wait_i;
  assign ready_o = (count_q != CountBits'(Outstanding)) &&
                   (!range_q || continues || (can_send && !more));
  assign accept = request_i && ready_o;
  assign send = can_send && (more || !goes_on || (first_q[27:ChunkBits] != last_q[27:ChunkBits]));
  assign length = 8'(end_d - first_q);
  assign next_o = first_q[27:BeatBits];

  always_ff @(posedge clk_i) begin
    if (send) begin
      araddr_q <= first_q;
      arlen_q <= length;
    end
    if (accept && !continues) first_q <= row_first;
    else if (send) first_q <= end_d + 28'd1;
    if (accept) begin
      last_q <= row_last;
      rows_q[write_q] <= {goes_on && (row_first == last_q), 7'(row_last - row_first),
                          address_i[3:0]};
    end
    if (clear_i) begin
      range_q <= 1'b0;
      arvalid_q <= 1'b0;
      write_q <= '0;
    end else begin
      if (accept) range_q <= 1'b1;
      else if (send && !more) range_q <= 1'b0;
      if (send) arvalid_q <= 1'b1;
      else if (arready_i) arvalid_q <= 1'b0;
      write_q <= write_q + PointerBits'(accept);
      reads_wait_for_a_write : cover (range_q && wait_i);
      rows_continue_a_burst : cover (goes_on && arvalid_q && !arready_i);
      rows_share_a_beat : cover (goes_on && (row_first == last_q));
    end
  end

  assign {beats, offset} = rows_q[read_q][10:0];
  assign next_shares = (count_q > CountBits'(1)) && rows_q[read_q+1'b1][11];
  assign step = beat_q && (count_q != '0);
  assign row_ends = step && (index_q == beats);
  assign beat_ends = step && !(row_ends && next_shares);
  assign rready_o = !beat_q || beat_ends;
  assign rotated = 128'({2{beat_data_q}} >> {offset, 3'd0});

  always_ff @(posedge clk_i) begin
    if (rvalid_i && rready_o) beat_data_q <= rdata_i;
    // Byte b of the row lies in beat (offset + b) / 16.
    for (int unsigned b = 0; b < RowBytes; b++)
      if (step && (32'(index_q) == ((b + 32'(offset)) >> 4))) row_q[b*8+:8] <= rotated[(b%16)*8+:8];
    if (clear_i) begin
      beat_q <= 1'b0;
      valid_q <= 1'b0;
      index_q <= '0;
      read_q <= '0;
      count_q <= '0;
    end else begin
      if (rvalid_i && rready_o) beat_q <= 1'b1;
      else if (beat_ends) beat_q <= 1'b0;
      valid_q <= row_ends;
      if (step) index_q <= row_ends ? '0 : index_q + 7'd1;
      read_q <= read_q + PointerBits'(row_ends);
      count_q <= count_q + CountBits'(accept) - CountBits'(row_ends);
      bursts_stay_in_a_block : assert (!arvalid_q ||
          (32'(araddr_q[BeatBits-1:0]) + 32'(arlen_q) < MaxBeats));
      beats_have_a_row : assert (!(beat_q && (count_q == '0)));
      rows_fit_the_ring : assert (count_q <= CountBits'(Outstanding));
      beats_are_refused : cover (rvalid_i && !rready_o);
    end
  end

`ifdef FORMAL
  // Beats on the address channel or asked for there, which the memory answers.
  logic [15:0] due_q;
  always_ff @(posedge clk_i)
    due_q <= clear_i ? '0 : due_q + (send ? 16'(length) + 16'd1 : '0) -
                            16'(rvalid_i && rready_o);
  // Beats that the rows of the ring need.
  logic [15:0] needed;
  always_comb begin
    needed = ((count_q != '0) ? 16'(rows_q[read_q][11]) : 16'd0) - 16'(index_q);
    for (int unsigned i = 0; i < Outstanding; i++)
      if (i < 32'(count_q))
        needed += 16'(rows_q[read_q+PointerBits'(i)][10:4]) + 16'd1 -
                  16'(rows_q[read_q+PointerBits'(i)][11]);
  end
  logic was_waiting_q;
  logic [35:0] was_q;
  always_ff @(posedge clk_i) begin
    was_waiting_q <= arvalid_q && !arready_i && !clear_i;
    was_q <= {araddr_q, arlen_q};
    if (!clear_i) begin
      beats_were_asked_for : assert (
          !(rvalid_i && (due_q <= (arvalid_q ? 16'(arlen_q) + 16'd1 : 16'd0))));
      rows_fit_the_port : assert (!request_i || ((bytes_i != '0) && (32'(bytes_i) <= RowBytes) &&
                                                 (row_first <= row_last)));
      addresses_are_held : assert (!was_waiting_q || (arvalid_q && (was_q == {araddr_q, arlen_q})));
      beats_are_those_of_the_rows : assert (
          16'(beat_q) + due_q + (range_q ? 16'(last_q - first_q) + 16'd1 : 16'd0) == needed);
      // Invariants that prove the rules above.
      assert (write_q - read_q == count_q[PointerBits-1:0]);
      assert ((due_q <= needed) && (!range_q || (last_q - first_q < 28'(needed))));
      assert ((count_q != '0) ? (index_q <= beats) : (index_q == '0));
      for (int unsigned i = 0; i < Outstanding; i++)
        assert ((i >= 32'(count_q)) ||
                (32'(rows_q[read_q+PointerBits'(i)][10:4]) <= (RowBytes + 14) / 16));
    end
  end
`endif

  assign valid_o = valid_q;
  assign data_o = row_q;
  assign busy_o = (count_q != '0) || valid_q;
  assign error_o = rvalid_i && (rresp_i != 2'b00);
  assign arvalid_o = arvalid_q;
  assign araddr_o = {araddr_q, 4'd0};
  assign arlen_o = arlen_q;
endmodule
