// The load unit: DRAM to unified buffer. A request loads one group, of 2^log2_group elements or of
// Rows where those are more, for a buffer row. mmu_fill spreads it over the banks.
// SPDX-License-Identifier: Apache-2.0
module mmu_load #(
    parameter int unsigned Rows = 4,
    parameter int unsigned BufferRows = 64,
    parameter int unsigned ElementBits = 16
) (
    input logic clk_i,
    input logic clear_i,
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
    // For the row that arrives in this cycle.
    output logic [$clog2(BufferRows)-1:0] write_row_o,
    output logic [3:0] write_log2_group_o
);
  mmu_pkg::load_t load;
  assign load = word_i;
  localparam int unsigned RowBits = $clog2(BufferRows);
  localparam int unsigned LaneBits = $clog2(Rows);
  localparam int unsigned TagBits = 8;  // {log2_group, signal}

  logic ready, last;
  logic [3:0] log2_group;
  logic [TagBits-1:0] tag;

  assign log2_group = load.log2_group;
  assign pop_o = valid_i && tokens_i && ready;

  mmu_reader #(
      .RowBits(RowBits),
      .TagBits(TagBits)
  ) u_reader (
      .clk_i,
      .clear_i,
      .start_i(pop_o),
      .address_i(load.address),
      .pitch_i(load.pitch),
      .bytes_i((log2_group == 4'(LaneBits)) ? 16'(Rows * ElementBits / 8)
                                            : 16'(ElementBits / 8) << log2_group),
      .units_i(load.units),
      .lines_i(load.lines),
      .row_i(load.buffer_row[RowBits-1:0]),
      .row_pitch_i(load.buffer_pitch[RowBits-1:0]),
      .tag_i({log2_group, load.signal}),
      .ready_o(ready),
      .quiet_o,
      .request_o,
      .request_address_o,
      .request_bytes_o,
      .grant_i,
      .arrival_i,
      .arrival_row_o(write_row_o),
      .arrival_tag_o(tag),
      .arrival_last_o(last)
  );

  assign write_log2_group_o = tag[7:4];
  assign done_o = arrival_i && last;
  assign give_o = done_o ? tag[3:0] : 4'b0000;
endmodule
