// Which instructions the dispatcher refuses: unknown opcodes, zero counts and sizes, tiles beyond
// the array, groups beyond the lanes, accumulator rows beyond the memory, instructions of a vector
// unit that is not there. Combinational.
// SPDX-License-Identifier: Apache-2.0
module mmu_check #(
    parameter int unsigned Rows = 4,
    parameter int unsigned Columns = 4,
    parameter int unsigned AccumulatorRows = 64,
    parameter int unsigned OutputStationary = 0,
    parameter int unsigned VectorRows = 0
) (
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    output logic illegal_o
);
  localparam logic [15:0] ROWS = 16'(Rows);
  localparam logic [15:0] COLUMNS = 16'(Columns);
  localparam logic [15:0] GROUPS = groups();  // those that exist, by log2_group
  localparam logic [16:0] ACCUMULATOR_ROWS = 17'(AccumulatorRows);

  // A group has 2^log2_group channels, or Rows where those are more. It divides Rows, and has one
  // name.
  function automatic logic [15:0] groups();
    groups = '0;
    for (int unsigned i = 0; i < 9; i++)
      groups[i] = ((1 << i) < 2 * Rows) && (((1 << i) >= Rows) || ((Rows % (1 << i)) == 0));
  endfunction

  // The word as each instruction.
  mmu_pkg::instruction_t instruction;
  mmu_pkg::load_t load;
  mmu_pkg::weight_load_t weight_load;
  mmu_pkg::set_stream_t set_stream;
  mmu_pkg::set_taps_t set_taps;
  mmu_pkg::matmul_t matmul;
  mmu_pkg::set_output_t set_output;
  mmu_pkg::load_registers_t load_registers;
  mmu_pkg::store_t store;
  mmu_pkg::vector_load_t vector_load;  // and vector_store, which has the same operands
  mmu_pkg::vector_op_t vector_op;
  assign instruction = word_i;
  assign load = word_i;
  assign weight_load = word_i;
  assign set_stream = word_i;
  assign set_taps = word_i;
  assign matmul = word_i;
  assign set_output = word_i;
  assign load_registers = word_i;
  assign store = word_i;
  assign vector_load = word_i;
  assign vector_op = word_i;

  // Matmuls and tiles of the other dataflow.
  localparam bit BOTH = OutputStationary != 0;
  logic stationary, bad_dataflow;
  assign stationary = matmul.flags.output_stationary;
  assign bad_dataflow = stationary ? !BOTH || matmul.flags.keep || matmul.flags.abut ||
                                         (matmul.count > ROWS)
                                   : matmul.flags.drain;

  logic [16:0] matmul_end, store_end;
  assign matmul_end = 17'(matmul.accumulator) + 17'(matmul.count);
  assign store_end = 17'(store.accumulator) + 17'(store.count);

  always_comb begin
    unique case (instruction.opcode)
      mmu_pkg::OP_HALT, mmu_pkg::OP_SET_OPERAND: illegal_o = 1'b0;
      mmu_pkg::OP_LOAD:
      illegal_o = (load.units == '0) || (load.lines == '0) || !GROUPS[load.log2_group];
      mmu_pkg::OP_WEIGHT_LOAD:
      illegal_o = (weight_load.rows == '0) || (weight_load.rows > ROWS) ||
                  (weight_load.columns == '0) || (weight_load.columns > COLUMNS) ||
                  (weight_load.flags.stream && !BOTH);
      mmu_pkg::OP_SET_STREAM:
      illegal_o = (set_stream.in_height == '0) || (set_stream.in_width == '0) ||
                  (set_stream.out_height == '0) || (set_stream.out_width == '0);
      mmu_pkg::OP_SET_TAPS:
      illegal_o = (set_taps.channels == '0) || (set_taps.kernel_width == '0) ||
                  !GROUPS[set_taps.log2_group];
      mmu_pkg::OP_MATMUL:
      illegal_o = (matmul.count == '0) || (matmul.rows_left == '0) ||
                  (matmul.columns_left == '0) || (matmul_end > ACCUMULATOR_ROWS) || bad_dataflow ||
                  (matmul.flags.abut && (!matmul.flags.transpose || (matmul.count < ROWS)));
      mmu_pkg::OP_SET_OUTPUT:
      illegal_o = (set_output.out_height == '0) || (set_output.out_width == '0);
      mmu_pkg::OP_LOAD_REGISTERS:
      illegal_o = (load_registers.columns == '0) || (load_registers.columns > COLUMNS) ||
                  (3'(load_registers.file) + 3'(load_registers.more) > 3'd2);
      mmu_pkg::OP_STORE:
      illegal_o = (store.count == '0) || (store.rows_left == '0) ||
                  (store.columns_left == '0) || (store.columns == '0) ||
                  (store.columns > COLUMNS) ||
                  (store.flags.residual && store.flags.select) ||
                  (store.flags.buffer &&
                   (!store.flags.narrow || store.flags.mask || !GROUPS[store.log2_group] ||
                    (store.columns > (16'd1 << store.log2_group)) || (store.columns > ROWS))) ||
                  (store_end > ACCUMULATOR_ROWS);
      mmu_pkg::OP_VECTOR_LOAD, mmu_pkg::OP_VECTOR_STORE:
      illegal_o = (VectorRows == 0) || (vector_load.count == '0) ||
                  (vector_load.columns == '0) || (vector_load.columns > COLUMNS);
      mmu_pkg::OP_VECTOR_OP:
      illegal_o = (VectorRows == 0) || (vector_op.count == '0) ||
                  (vector_op.operation > mmu_pkg::OPERATION_BROADCAST) ||
                  ((vector_op.operation >= mmu_pkg::OPERATION_ROTATE) &&
                   (vector_op.scalar >= 32'(Columns)));
      default: illegal_o = 1'b1;
    endcase
  end
endmodule
