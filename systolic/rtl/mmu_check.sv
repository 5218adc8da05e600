// Which instructions the dispatcher refuses: unknown opcodes, zero counts and sizes, tiles beyond
// the array, groups beyond the lanes, accumulator rows beyond the memory. Combinational.
// SPDX-License-Identifier: Apache-2.0
module mmu_check #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned AccumulatorRows = 64
) (
    // Some bits of an instruction (addresses, strides) can have any value.
    // verilator lint_off UNUSEDSIGNAL
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic illegal_o
);
  localparam logic [15:0] ROWS = 16'(Rows);
  localparam logic [15:0] COLUMNS = 16'(Columns);
  localparam logic [3:0] LOG2_ROWS = 4'($clog2(Rows));
  localparam logic [16:0] ACCUMULATOR_ROWS = 17'(AccumulatorRows);

  logic [15:0] tile_rows, tile_columns, register_columns, store_columns;
  logic [16:0] matmul_end, store_end;
  assign tile_rows = word_i[mmu_pkg::WEIGHT_LOAD_ROWS_LSB+:16];
  assign tile_columns = word_i[mmu_pkg::WEIGHT_LOAD_COLUMNS_LSB+:16];
  assign register_columns = word_i[mmu_pkg::LOAD_REGISTERS_COLUMNS_LSB+:16];
  assign store_columns = word_i[mmu_pkg::STORE_COLUMNS_LSB+:16];
  assign matmul_end = {1'b0, word_i[mmu_pkg::MATMUL_ACCUMULATOR_LSB+:16]} +
                      {1'b0, word_i[mmu_pkg::MATMUL_COUNT_LSB+:16]};
  assign store_end = {1'b0, word_i[mmu_pkg::STORE_ACCUMULATOR_LSB+:16]} +
                     {1'b0, word_i[mmu_pkg::STORE_COUNT_LSB+:16]};

  always_comb begin
    unique case (word_i[mmu_pkg::OPCODE_LSB+:mmu_pkg::OPCODE_BITS])
      mmu_pkg::OP_HALT, mmu_pkg::OP_SET_OPERAND: illegal_o = 1'b0;
      mmu_pkg::OP_LOAD:
      illegal_o = (word_i[mmu_pkg::LOAD_UNITS_LSB+:mmu_pkg::LOAD_UNITS_BITS] == '0) ||
                  (word_i[mmu_pkg::LOAD_LINES_LSB+:mmu_pkg::LOAD_LINES_BITS] == '0) ||
                  (word_i[mmu_pkg::LOAD_LOG2_GROUP_LSB+:4] > LOG2_ROWS);
      mmu_pkg::OP_WEIGHT_LOAD:
      illegal_o = (tile_rows == '0) || (tile_rows > ROWS) ||
                  (tile_columns == '0) || (tile_columns > COLUMNS);
      mmu_pkg::OP_SET_STREAM:
      illegal_o = (word_i[mmu_pkg::SET_STREAM_IN_HEIGHT_LSB+:16] == '0) ||
                  (word_i[mmu_pkg::SET_STREAM_IN_WIDTH_LSB+:16] == '0) ||
                  (word_i[mmu_pkg::SET_STREAM_OUT_HEIGHT_LSB+:16] == '0) ||
                  (word_i[mmu_pkg::SET_STREAM_OUT_WIDTH_LSB+:16] == '0);
      mmu_pkg::OP_SET_TAPS:
      illegal_o = (word_i[mmu_pkg::SET_TAPS_CHANNELS_LSB+:16] == '0) ||
                  (word_i[mmu_pkg::SET_TAPS_KERNEL_WIDTH_LSB+:16] == '0) ||
                  (word_i[mmu_pkg::SET_TAPS_LOG2_GROUP_LSB+:4] > LOG2_ROWS);
      mmu_pkg::OP_MATMUL:
      illegal_o = (word_i[mmu_pkg::MATMUL_COUNT_LSB+:16] == '0) ||
                  (word_i[mmu_pkg::MATMUL_ROWS_LEFT_LSB+:16] == '0) ||
                  (word_i[mmu_pkg::MATMUL_COLUMNS_LEFT_LSB+:16] == '0) ||
                  (matmul_end > ACCUMULATOR_ROWS) ||
                  (word_i[mmu_pkg::MATMUL_ABUT_LSB] &&
                   (!word_i[mmu_pkg::MATMUL_TRANSPOSE_LSB] ||
                    (word_i[mmu_pkg::MATMUL_COUNT_LSB+:16] < ROWS)));
      mmu_pkg::OP_SET_OUTPUT:
      illegal_o = (word_i[mmu_pkg::SET_OUTPUT_OUT_HEIGHT_LSB+:16] == '0) ||
                  (word_i[mmu_pkg::SET_OUTPUT_OUT_WIDTH_LSB+:16] == '0);
      mmu_pkg::OP_LOAD_REGISTERS:
      illegal_o = (register_columns == '0) || (register_columns > COLUMNS) ||
                  ({1'b0, word_i[mmu_pkg::LOAD_REGISTERS_FILE_LSB+:2]} +
                   {1'b0, word_i[mmu_pkg::LOAD_REGISTERS_MORE_LSB+:2]} > 3'd2);
      mmu_pkg::OP_STORE:
      illegal_o = (word_i[mmu_pkg::STORE_COUNT_LSB+:16] == '0) ||
                  (word_i[mmu_pkg::STORE_ROWS_LEFT_LSB+:16] == '0) ||
                  (word_i[mmu_pkg::STORE_COLUMNS_LEFT_LSB+:16] == '0) ||
                  (store_columns == '0) || (store_columns > COLUMNS) ||
                  (word_i[mmu_pkg::STORE_RESIDUAL_LSB] && word_i[mmu_pkg::STORE_SELECT_LSB]) ||
                  (store_end > ACCUMULATOR_ROWS);
      default: illegal_o = 1'b1;
    endcase
  end
endmodule
