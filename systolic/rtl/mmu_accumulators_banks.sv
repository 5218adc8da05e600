// The accumulators as hardware has them: a memory per column. Same ports and same cycles as
// mmu_accumulators, which describes them.
// SPDX-License-Identifier: Apache-2.0
module mmu_accumulators_banks #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned AccumulatorRows = 64,
    parameter int unsigned Lead = 0,    // cycles of a product before its sum arrives
    parameter int unsigned Fill = Rows  // cycles from a column's first product to its sum
) (
    input logic clk_i,
    input logic enable_i,  // some slot is on its way
    // The slot that reaches stage 0 in the next cycle.
    input logic valid_i,
    input logic accumulate_i,
    input logic [$clog2(Columns+1)-1:0] columns_i,
    input logic [$clog2(AccumulatorRows)-1:0] row_i,
    output logic [Columns*32-1:0] psum_o,  // to the top of the array
    input logic [Columns*32-1:0] psum_i,   // from its bottom
    // Output unit.
    input logic read_i,
    input logic [$clog2(AccumulatorRows)-1:0] read_row_i,
    output logic [Columns*32-1:0] data_o
);
  localparam int unsigned RowBits = $clog2(AccumulatorRows);
  localparam int unsigned ColumnBits = $clog2(Columns + 1);
  localparam int unsigned Stages = Fill + Columns + 1;

  // By stage, the first in the low bits.
  logic [Stages*RowBits-1:0] row_q;
  logic [Stages*ColumnBits-1:0] columns_q;  // that write. 0: no slot
  logic [Columns+Lead-1:0] accumulate_q;
  logic [Columns-1:0] chained_q;  // the bank's output is a chain's sum so far

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      row_q <= {row_q[(Stages-1)*RowBits-1:0], row_i};
      columns_q <= {columns_q[(Stages-1)*ColumnBits-1:0], valid_i ? columns_i : ColumnBits'(0)};
      accumulate_q <= {accumulate_q[Columns+Lead-2:0], accumulate_i};
      chained_q <= accumulate_q[Columns+Lead-1:Lead];
      chain_follows_chain : cover (accumulate_q[Lead] && !chained_q[0]);
    end
  end

  for (genvar c = 0; c < Columns; c++) begin : gen_bank
    logic [31:0] feedback;
    mmu_sram_2r1w #(
        .Words(AccumulatorRows),
        .Bits(32)
    ) u_bank (
        .clk_i,
        .write_i(enable_i && (ColumnBits'(c) < columns_q[(c+Fill+1)*ColumnBits+:ColumnBits])),
        .write_row_i(row_q[(c+Fill+1)*RowBits+:RowBits]),
        .write_data_i(psum_i[c*32+:32]),
        .a_read_i(enable_i && accumulate_q[c+Lead]),
        .a_row_i(row_q[(c+Lead)*RowBits+:RowBits]),
        .a_data_o(feedback),
        .b_read_i(read_i),
        .b_row_i(read_row_i),
        .b_data_o(data_o[c*32+:32])
    );
    assign psum_o[c*32+:32] = chained_q[c] ? feedback : 32'd0;
  end
endmodule
