// The vector unit: a memory of rows of binary32 numbers, a lane for each column, and the three
// instructions of the store unit's queue that use them. One instruction runs at a time. It starts
// in cycle s and reads its first row in s + 1. An operation reads a row per cycle, with operand c a
// row every second cycle, and writes a row three cycles after the read of its operands.
// SPDX-License-Identifier: Apache-2.0
module mmu_vector #(
    parameter int unsigned Columns = 4,
    parameter int unsigned AccumulatorRows = 64,
    parameter int unsigned VectorRows = 64  // power of two, at least 2
) (
    input logic clk_i,
    input logic clear_i,
    input logic start_i,  // the instruction leaves the queue
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    output logic busy_o,
    output logic done_o,  // the instruction ends with this cycle
    // DRAM ports: one that writes, one that reads. They share the address.
    output logic [31:0] address_o,
    output logic [15:0] bytes_o,
    output logic request_o,
    output logic [Columns*32-1:0] data_o,
    input logic grant_i,
    output logic read_request_o,
    input logic read_grant_i,
    input logic arrival_i,
    input logic [Columns*32-1:0] arrival_data_i,
    // Accumulators.
    output logic sums_read_o,
    output logic [$clog2(AccumulatorRows)-1:0] sums_row_o,
    input logic [Columns*32-1:0] sums_data_i,
    output mmu_vector_pkg::actions_t actions_o
);
  localparam int unsigned RowBits = $clog2(VectorRows);
  localparam int unsigned LaneBits = $clog2(Columns);
  localparam int unsigned Outstanding = 128;  // reads

  // VectorStore has the operands of VectorLoad in the same bits.
  mmu_pkg::vector_load_t vector_load;
  mmu_pkg::vector_op_t vector_op;
  assign vector_load = word_i;
  assign vector_op = word_i;
  logic is_op;
  assign is_op = vector_load.opcode == mmu_pkg::OP_VECTOR_OP;

  // The instruction that runs. Result: the row that a load or an operation writes next. a, b, c:
  // rows of the next operands, a also of a store.
  logic load_q, store_q, op_q;
  logic [4:0] operation_q;
  logic accumulators_q, constant_q, with_c_q, narrow_q;
  logic [15:0] result_q, step_q, a_q, a_step_q, b_q, b_step_q, c_q, c_step_q;
  logic [15:0] columns_q, asks_left_q, ends_left_q;
  logic [31:0] address_q, pitch_q, scalar_q;
  logic c_asked_q;      // operand c of the next row
  logic presents_q;     // a row of a store, at its port
  logic [2:0] valid_q;  // an operation's row: operands, product, result are there

  logic reads_a, reads_b, reads_c, reads_row, asks, ends;
  assign reads_c = op_q && with_c_q && !c_asked_q && (asks_left_q != '0);
  assign reads_row = (asks_left_q != '0) &&
                     ((op_q && !reads_c) || (store_q && (!presents_q || grant_i)));
  assign reads_a = reads_row &&
                   (store_q || (mmu_pkg::OPERATIONS_READ_A[operation_q] && !accumulators_q));
  assign reads_b = reads_row && op_q && mmu_pkg::OPERATIONS_READ_B[operation_q] && !constant_q;
  assign asks = reads_row || (load_q && read_grant_i);
  assign ends = (load_q && arrival_i) || (store_q && grant_i) || (op_q && valid_q[2]);

  logic [Columns*32-1:0] loaded, results, a_data, b_data, a, c_data_q;
  mmu_sram_2r1w #(
      .Words(VectorRows),
      .Bits(Columns * 32)
  ) u_rows (
      .clk_i,
      .write_i(ends && !store_q),
      .write_row_i(result_q[RowBits-1:0]),
      .write_data_i(load_q ? loaded : results),
      .a_read_i(reads_a),
      .a_row_i(a_q[RowBits-1:0]),
      .a_data_o(a_data),
      .b_read_i(reads_b || reads_c),
      .b_row_i(reads_c ? c_q[RowBits-1:0] : b_q[RowBits-1:0]),
      .b_data_o(b_data)
  );

  // Operand a, and its lanes crossed.
  logic [2*Columns*32-1:0] turned;
  logic [Columns*32-1:0] operand;
  assign operand = accumulators_q ? sums_data_i : a_data;
  always_comb begin
    turned = {2{operand}};
    a = operand;
    if (operation_q >= mmu_pkg::OPERATION_ROTATE) begin
      turned = turned >> {scalar_q[LaneBits-1:0], 5'd0};
      a = (operation_q == mmu_pkg::OPERATION_ROTATE) ? turned[Columns*32-1:0]
                                                     : {Columns{turned[31:0]}};
    end
  end

  for (genvar l = 0; l < Columns; l++) begin : gen_lane
    mmu_vector_lane u_lane (
        .clk_i,
        .enable_i(valid_q != '0),
        .operation_i(operation_q),
        .a_i(a[l*32+:32]),
        .b_i(constant_q ? scalar_q : b_data[l*32+:32]),
        .c_i(c_data_q[l*32+:32]),
        .result_o(results[l*32+:32])
    );
    assign loaded[l*32+:32] = (16'(l) >= columns_q) ? 32'd0
                              : narrow_q ? {arrival_data_i[l*16+:16], 16'd0}
                              : arrival_data_i[l*32+:32];
  end

  always_comb begin : rows_to_store
    // verilator tracing_off
    int unsigned l;
    // verilator tracing_on
    l = 0;
    data_o = a_data;
    if (narrow_q) begin
      for (l = 0; l < Columns; l++) begin
        data_o[l*16+:16] = mmu_arithmetic_pkg::narrow(a_data[l*32+:32]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      operation_q <= vector_op.operation;
      accumulators_q <= vector_op.flags.accumulators;
      constant_q <= vector_op.flags.constant;
      with_c_q <= mmu_pkg::OPERATIONS_READ_C[vector_op.operation];
      narrow_q <= vector_load.flags.narrow;
      result_q <= is_op ? vector_op.destination : vector_load.row;
      step_q <= is_op ? vector_op.step : 16'd1;
      a_q <= is_op ? vector_op.a : vector_load.row;
      a_step_q <= is_op ? vector_op.a_step : 16'd1;
      b_q <= vector_op.b;
      b_step_q <= vector_op.b_step;
      c_q <= vector_op.c;
      c_step_q <= vector_op.c_step;
      scalar_q <= vector_op.scalar;
      columns_q <= vector_load.columns;
      address_q <= vector_load.address;
      pitch_q <= vector_load.pitch;
      asks_left_q <= is_op ? vector_op.count : vector_load.count;
      ends_left_q <= is_op ? vector_op.count : vector_load.count;
    end else begin
      if (asks) begin
        a_q <= a_q + a_step_q;
        b_q <= b_q + b_step_q;
        c_q <= c_q + c_step_q;
        asks_left_q <= asks_left_q - 16'd1;
      end
      if (ends) begin
        result_q <= result_q + step_q;
        ends_left_q <= ends_left_q - 16'd1;
      end
      if ((load_q && read_grant_i) || (store_q && grant_i)) address_q <= address_q + pitch_q;
    end
    if (op_q) c_data_q <= b_data;
    if (clear_i) begin
      load_q <= 1'b0;
      store_q <= 1'b0;
      op_q <= 1'b0;
      c_asked_q <= 1'b0;
      presents_q <= 1'b0;
      valid_q <= '0;
    end else begin
      if (start_i) begin
        load_q <= vector_load.opcode == mmu_pkg::OP_VECTOR_LOAD;
        store_q <= vector_load.opcode == mmu_pkg::OP_VECTOR_STORE;
        op_q <= is_op;
      end else if (done_o) begin
        load_q <= 1'b0;
        store_q <= 1'b0;
        op_q <= 1'b0;
      end
      c_asked_q <= reads_c;
      if (store_q && reads_row) presents_q <= 1'b1;
      else if (grant_i) presents_q <= 1'b0;
      valid_q <= {valid_q[1:0], op_q && reads_row};
      one_vector_instruction_runs : assert (!(start_i && busy_o));
      rows_end_after_they_are_asked_for : assert (!(ends && (ends_left_q == '0)));
      vector_answers_were_asked_for :
      assert (!(load_q && arrival_i && (ends_left_q == asks_left_q)));
      vector_store_waits_for_its_port : cover (request_o && !grant_i);
      vector_load_waits_for_its_port : cover (read_request_o && !read_grant_i);
      vector_row_has_three_operands : cover (reads_c);
    end
  end

  assign busy_o = load_q || store_q || op_q;
  assign done_o = ends && (ends_left_q == 16'd1);
  assign address_o = address_q;
  assign bytes_o = columns_q << (narrow_q ? 1 : 2);
  assign request_o = presents_q;
  assign read_request_o = load_q && (asks_left_q != '0) &&
                          ((ends_left_q - asks_left_q) != 16'(Outstanding));
  assign sums_read_o = op_q && reads_row && accumulators_q;
  assign sums_row_o = a_q[$clog2(AccumulatorRows)-1:0];

  logic computes;
  assign computes = ends && op_q;
  assign actions_o.runs = start_i || busy_o;
  assign actions_o.sums = sums_read_o;
  assign actions_o.reads = 2'(reads_a) + 2'(reads_b || reads_c);
  assign actions_o.write = ends && !store_q;
  assign actions_o.add = computes && mmu_pkg::OPERATIONS_ADD[operation_q];
  assign actions_o.multiply = computes && mmu_pkg::OPERATIONS_MULTIPLY[operation_q];
  assign actions_o.fma = computes && mmu_pkg::OPERATIONS_FMA[operation_q];
  assign actions_o.other = computes && mmu_pkg::OPERATIONS_OTHER[operation_q];
endmodule
