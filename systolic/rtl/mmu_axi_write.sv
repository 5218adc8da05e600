// Serves the DRAM port that writes as an AXI4 master with 128 bits of data. Rows of consecutive
// requests share bursts and beats. A burst stays in an aligned block of MaxBeats beats. It is sent
// when it is complete: in the cycle when no row continues it. A read must wait for writes to its
// block that the memory has not acknowledged.
// SPDX-License-Identifier: Apache-2.0
module mmu_axi_write #(
    parameter int unsigned RowBytes = 16,  // of the widest row, up to 1024
    parameter int unsigned Outstanding = 16,  // bursts, a power of two
    parameter int unsigned MaxBeats = 16,  // of a burst: a power of two, 2 to 256
    parameter int unsigned Reads = 3  // ports that read
) (
    input logic clk_i,
    input logic clear_i,
    // The machine's port.
    input logic request_i,
    input logic [31:0] address_i,
    input logic [15:0] bytes_i,
    input logic [RowBytes*8-1:0] data_i,
    output logic ready_o,
    output logic busy_o,  // writes are outstanding
    output logic error_o,  // the memory reports an error
    // Blocks of the next bursts of the ports that read, and whether they must wait.
    input logic [Reads*(28-$clog2(MaxBeats))-1:0] reads_i,
    output logic [Reads-1:0] wait_o,
    // AXI4: AW, W and B, which is always ready. Addresses are multiples of 16.
    output logic awvalid_o,
    input logic awready_i,
    output logic [31:0] awaddr_o,
    output logic [7:0] awlen_o,
    output logic wvalid_o,
    input logic wready_i,
    output logic [127:0] wdata_o,
    output logic [15:0] wstrb_o,
    output logic wlast_o,
    input logic bvalid_i,
    output logic bready_o,
    input logic [1:0] bresp_i
);
  localparam int unsigned BeatBits = $clog2(MaxBeats);
  localparam int unsigned Words = 2 * MaxBeats;
  localparam int unsigned WordBits = BeatBits + 2;
  localparam int unsigned BlockBits = 28 - BeatBits;
  localparam int unsigned PointerBits = $clog2(Outstanding);
  localparam int unsigned CountBits = PointerBits + 1;
  localparam int unsigned Chunks = (RowBytes + 15) / 16;

  // The row that is taken apart, beat by beat.
  logic row_q, row_begins_q, row_ends, take;
  logic [27:0] at_q, row_last_q;
  logic [3:0] offset_q, end_q;
  logic [Chunks*128-1:0] data_q;
  logic [127:0] data, before_q;
  logic [15:0] strobe;
  logic [31:0] row_end;

  // The beat that is put together, the last one of the burst that is not sent yet.
  logic held_q, same, follows, push, close;
  logic [27:0] held_at_q, start, start_q;
  logic [127:0] held_data_q;
  logic [15:0] held_strobe_q;
  logic [7:0] length_q;  // beats of the burst before it

  // Beats for the data channel, a ring, and complete bursts, another one: {address, beats - 1}.
  logic [143:0] words_q[Words];
  logic [WordBits-1:0] word_write_q, word_read_q, words;
  logic [35:0] bursts_q[Outstanding];
  logic [CountBits-1:0] closed_q, addressed_q, sent_q, answered_q;  // numbers of bursts
  logic [CountBits-1:0] pending;
  logic [7:0] beat_q;  // of the burst on the data channel

  assign row_end = address_i + 32'(bytes_i) - 32'd1;
  assign words = word_write_q - word_read_q;
  assign pending = closed_q - answered_q;
  assign same = row_q && held_q && (at_q == held_at_q);
  assign follows = row_q && (at_q == held_at_q + 28'd1) && (held_at_q[BeatBits-1:0] != '1);
  assign close = !follows;
  assign push = held_q && !same && (words != WordBits'(Words)) &&
                (pending != CountBits'(Outstanding));
  assign take = row_q && (!held_q || same || push);
  assign row_ends = take && (at_q == row_last_q);
  assign ready_o = !row_q || row_ends;
  assign start = (length_q == '0) ? held_at_q : start_q;

  always_comb begin
    data = 128'({data_q[127:0], before_q} >> (8'd128 - {1'b0, offset_q, 3'd0}));
    for (int unsigned b = 0; b < 16; b++)
      strobe[b] = !(row_begins_q && (b < 32'(offset_q))) &&
                  !((at_q == row_last_q) && (b > 32'(end_q)));
  end

  always_ff @(posedge clk_i) begin
    if (request_i && ready_o) begin
      at_q <= address_i[31:4];
      row_last_q <= row_end[31:4];
      offset_q <= address_i[3:0];
      end_q <= row_end[3:0];
      row_begins_q <= 1'b1;
      data_q <= (Chunks*128)'(data_i);
    end else if (take) begin
      at_q <= at_q + 28'd1;
      row_begins_q <= 1'b0;
      before_q <= data_q[127:0];
      data_q <= data_q >> 128;
    end
    if (take) begin
      held_at_q <= at_q;
      held_strobe_q <= same ? (held_strobe_q | strobe) : strobe;
      for (int unsigned b = 0; b < 16; b++)
        if (strobe[b]) held_data_q[b*8+:8] <= data[b*8+:8];
    end
    if (push) begin
      words_q[word_write_q[BeatBits:0]] <= {held_strobe_q, held_data_q};
      start_q <= start;
      if (close) bursts_q[closed_q[PointerBits-1:0]] <= {start, length_q};
    end
    if (clear_i) begin
      row_q <= 1'b0;
      held_q <= 1'b0;
      length_q <= '0;
      word_write_q <= '0;
      closed_q <= '0;
    end else begin
      if (request_i && ready_o) row_q <= 1'b1;
      else if (row_ends) row_q <= 1'b0;
      if (take) held_q <= 1'b1;
      else if (push) held_q <= 1'b0;
      if (push) length_q <= close ? '0 : length_q + 8'd1;
      word_write_q <= word_write_q + WordBits'(push);
      closed_q <= closed_q + CountBits'(push && close);
      rows_complete_a_beat : cover (same);
      beats_wait_for_the_memory : cover (held_q && !same && !push);
    end
  end

  logic [7:0] burst_beats;
  logic [27:0] unused_start;
  assign awvalid_o = addressed_q != closed_q;
  assign {awaddr_o[31:4], awlen_o} = bursts_q[addressed_q[PointerBits-1:0]];
  assign awaddr_o[3:0] = 4'd0;
  assign wvalid_o = sent_q != closed_q;
  assign {wstrb_o, wdata_o} = words_q[word_read_q[BeatBits:0]];
  assign {unused_start, burst_beats} = bursts_q[sent_q[PointerBits-1:0]];
  assign wlast_o = beat_q == burst_beats;
  assign bready_o = 1'b1;
  assign error_o = bvalid_i && (bresp_i != 2'b00);
  assign busy_o = row_q || held_q || (pending != '0);

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      addressed_q <= '0;
      sent_q <= '0;
      answered_q <= '0;
      word_read_q <= '0;
      beat_q <= '0;
    end else begin
      addressed_q <= addressed_q + CountBits'(awvalid_o && awready_i);
      answered_q <= answered_q + CountBits'(bvalid_i);
      if (wvalid_o && wready_i) begin
        word_read_q <= word_read_q + 1'b1;
        sent_q <= sent_q + CountBits'(wlast_o);
        beat_q <= wlast_o ? '0 : beat_q + 8'd1;
      end
      bursts_stay_in_a_block : assert (!awvalid_o ||
          (32'(awaddr_o[4+:BeatBits]) + 32'(awlen_o) < MaxBeats));
      bursts_have_their_data : assert (!wvalid_o || (words != '0));
      words_fit_the_ring : assert (words <= WordBits'(Words));
      bursts_fit_the_ring : assert (pending <= CountBits'(Outstanding));
      answers_were_asked_for : assert (!(bvalid_i && ((answered_q == addressed_q) ||
                                                      (answered_q == sent_q))));
    end
  end

  // Blocks that a read must not have yet.
  for (genvar p = 0; p < Reads; p++) begin : gen_reads
    logic [BlockBits-1:0] block;
    logic [Outstanding-1:0] hit;
    assign block = reads_i[p*BlockBits+:BlockBits];
    for (genvar i = 0; i < Outstanding; i++) begin : gen_bursts
      logic [PointerBits-1:0] age;
      assign age = PointerBits'(i) - answered_q[PointerBits-1:0];
      assign hit[i] = (CountBits'(age) < pending) && (bursts_q[i][35-:BlockBits] == block);
    end
    assign wait_o[p] = (hit != '0) || (held_q && (held_at_q[27:BeatBits] == block)) ||
                       (row_q && (at_q[27:BeatBits] <= block) &&
                        (row_last_q[27:BeatBits] >= block));
  end

`ifdef FORMAL
  // Words that complete bursts still have to send, and the beats of the burst before the held one.
  logic [CountBits-1:0] unsent;
  logic [WordBits+7:0] needed;
  assign unsent = closed_q - sent_q;
  always_comb begin
    needed = (WordBits + 8)'(length_q) - (WordBits + 8)'(beat_q);
    for (int unsigned i = 0; i < Outstanding; i++)
      if (i < 32'(unsent))
        needed += (WordBits + 8)'(bursts_q[sent_q[PointerBits-1:0]+PointerBits'(i)][7:0]) + 1'b1;
  end
  logic aw_waits_q, w_waits_q;
  logic [39:0] aw_was_q;
  logic [144:0] w_was_q;
  always_ff @(posedge clk_i) begin
    aw_waits_q <= awvalid_o && !awready_i && !clear_i;
    w_waits_q <= wvalid_o && !wready_i && !clear_i;
    aw_was_q <= {awaddr_o, awlen_o};
    w_was_q <= {wlast_o, wstrb_o, wdata_o};
    if (!clear_i) begin
      rows_fit_the_port : assert (!request_i || ((bytes_i != '0) && (32'(bytes_i) <= RowBytes)));
      addresses_are_held : assert (!aw_waits_q || (awvalid_o && (aw_was_q == {awaddr_o, awlen_o})));
      data_are_held : assert (!w_waits_q || (wvalid_o && (w_was_q == {wlast_o, wstrb_o, wdata_o})));
      bursts_have_their_words : assert (needed == (WordBits + 8)'(words));
      // Invariants that prove the rules above.
      assert (closed_q - addressed_q <= pending);
      assert (unsent <= pending);
      assert (!wvalid_o || (beat_q <= burst_beats));
      assert (wvalid_o || (beat_q == '0));
      assert ((length_q == '0) || (held_q && (held_at_q == start_q + 28'(length_q)) &&
                                   (32'(start_q[BeatBits-1:0]) + 32'(length_q) < MaxBeats)));
      for (int unsigned i = 0; i < Outstanding; i++)
        assert ((i >= 32'(pending)) ||
                (32'(bursts_q[answered_q[PointerBits-1:0]+PointerBits'(i)][8+:BeatBits]) +
                 32'(bursts_q[answered_q[PointerBits-1:0]+PointerBits'(i)][7:0]) < MaxBeats));
    end
  end
`endif
endmodule
