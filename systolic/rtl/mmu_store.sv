// The store unit: accumulators through the output unit to DRAM or the unified buffer, one position
// per request, and its reads from DRAM: column registers, second operands. A position is one row of
// accumulators, or four where the store pools. From the last one's read it goes through the output
// unit, of one stage or of eleven, to the port. The pipeline waits when the port does. The vector
// unit takes its instructions from this queue and has the ports while it runs.
// SPDX-License-Identifier: Apache-2.0
module mmu_store #(
    parameter int unsigned Columns = 4,
    parameter int unsigned AccumulatorRows = 64,
    parameter int unsigned PeKind = 0,  // 0: bf16, 1: int8
    parameter int unsigned PeLatency = 1,  // 1: an output unit of one stage
    parameter int unsigned VectorRows = 0  // of the vector unit. 0: none
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
    // Ports for results, of DRAM and of the unified buffer. A store uses one of them.
    output logic request_o,
    output logic buffer_request_o,
    output logic [3:0] buffer_log2_group_o,
    output logic [31:0] request_address_o,
    output logic [15:0] request_bytes_o,
    output logic [Columns*32-1:0] request_data_o,
    input logic grant_i,
    // DRAM port for operands.
    output logic operand_request_o,
    output logic [31:0] operand_address_o,
    output logic [15:0] operand_bytes_o,
    input logic operand_grant_i,
    input logic operand_arrival_i,
    input logic [Columns*32-1:0] operand_data_i,
    // Accumulators.
    output logic read_o,
    output logic [$clog2(AccumulatorRows)-1:0] read_row_o,
    input logic [Columns*32-1:0] read_data_i,
    // For the counters: the Store that runs, and the vector unit.
    output mmu_vector_pkg::actions_t vector_actions_o,
    output logic [15:0] columns_o,
    output logic pool_o
);
  mmu_pkg::instruction_t instruction;
  mmu_pkg::store_t store;
  mmu_pkg::set_output_t set_output;
  mmu_pkg::load_registers_t load_registers;
  assign instruction = word_i;
  assign store = word_i;
  assign set_output = word_i;
  assign load_registers = word_i;
  localparam int unsigned RowBits = $clog2(AccumulatorRows);
  localparam int unsigned NARROW_SHIFT = (PeKind == 0) ? 1 : 0;  // log2 of a narrow value's bytes

  // SetOutput.
  logic [15:0] out_height_q, out_width_q;
  logic [31:0] step_x_q, wrap_y_q, wrap_n_q;
  logic [RowBits-1:0] pool_pitch_q, pool_wrap_y_q, pool_wrap_n_q;
  // The instruction that runs.
  logic store_q;
  logic [1:0] load_asks_q, load_answers_q;  // of LoadRegisters, left
  mmu_pkg::store_flags_t flags_q;
  logic [31:0] load_address_q, load_pitch_q;
  logic [1:0] file_q;
  logic [3:0] signal_q;
  logic [3:0] log2_group_q;
  logic [15:0] columns_q, asks_left_q, grants_left_q;
  logic [1:0] tap_q;  // of the requested position
  logic [1:0] read_tap_q;
  logic read_valid_q, output_valid_q;

  logic [7:0] opcode;
  logic idle, loading, pop_store, pop_load, pop_set, pop_set_operand, pool, narrow, mask, select;
  logic with_operand, operand_ready, last_ask, last_grant;
  logic output_ends, output_ready, registers_write, sets, read, grant;
  assign opcode = instruction.opcode;
  assign loading = load_answers_q != '0;
  assign idle = !store_q && !loading && !vector_busy;
  assign pop_o = valid_i && tokens_i && idle;
  assign pop_store = pop_o && (opcode == mmu_pkg::OP_STORE);
  assign pop_load = pop_o && (opcode == mmu_pkg::OP_LOAD_REGISTERS);
  assign pop_set = pop_o && (opcode == mmu_pkg::OP_SET_OUTPUT);
  assign pop_set_operand = pop_o && (opcode == mmu_pkg::OP_SET_OPERAND);
  assign pool = flags_q.pool;
  assign narrow = flags_q.narrow;
  assign mask = flags_q.mask;
  assign select = flags_q.select;
  assign with_operand = select || flags_q.residual;

  // The vector unit.
  logic vector_busy, vector_done, vector_request, vector_reads, vector_read;
  logic [31:0] vector_address;
  logic [15:0] vector_bytes;
  logic [RowBits-1:0] vector_row;
  logic [Columns*32-1:0] vector_data, output_data;
  assign grant = grant_i && !vector_busy;
  if (VectorRows != 0) begin : gen_vector
    mmu_vector #(
        .Columns(Columns),
        .AccumulatorRows(AccumulatorRows),
        .VectorRows(VectorRows)
    ) u_vector (
        .clk_i,
        .clear_i,
        .start_i(pop_o && ((opcode == mmu_pkg::OP_VECTOR_LOAD) ||
                           (opcode == mmu_pkg::OP_VECTOR_STORE) ||
                           (opcode == mmu_pkg::OP_VECTOR_OP))),
        .word_i,
        .busy_o(vector_busy),
        .done_o(vector_done),
        .address_o(vector_address),
        .bytes_o(vector_bytes),
        .request_o(vector_request),
        .data_o(vector_data),
        .grant_i(grant_i && vector_busy),
        .read_request_o(vector_reads),
        .read_grant_i(operand_grant_i && vector_busy),
        .arrival_i(operand_arrival_i && vector_busy),
        .arrival_data_i(operand_data_i),
        .sums_read_o(vector_read),
        .sums_row_o(vector_row),
        .sums_data_i(read_data_i),
        .actions_o(vector_actions_o)
    );
  end else begin : gen_no_vector
    assign {vector_busy, vector_done, vector_request, vector_reads, vector_read} = '0;
    assign {vector_address, vector_bytes, vector_row} = '0;
    assign vector_data = '0;
    assign vector_actions_o = '0;
  end

  // Rows of accumulators: asked for, in the output unit, presented. All move on unless a position
  // would leave the output unit and the one before it stands at the port.
  assign last_ask = !pool || (tap_q == 2'd3);
  assign output_ready = !output_ends || !output_valid_q || grant;
  assign read = store_q && (asks_left_q != '0) && output_ready &&
                (operand_ready || !last_ask || !with_operand);
  assign last_grant = grant && (grants_left_q == 16'd1);

  logic [RowBits-1:0] row;
  logic [31:0] place;
  mmu_walk u_address (
      .clk_i,
      .start_i(pop_store),
      .first_i(store.address),
      .rows_left_i(store.rows_left),
      .columns_left_i(store.columns_left),
      .next_i(grant),
      .out_height_i(out_height_q),
      .out_width_i(out_width_q),
      .step_x_i(step_x_q),
      .wrap_y_i(wrap_y_q),
      .wrap_n_i(wrap_n_q),
      .place_o(place)
  );
  mmu_walk #(
      .Bits(RowBits)
  ) u_row (
      .clk_i,
      .start_i(pop_store),
      .first_i(store.accumulator[RowBits-1:0]),
      .rows_left_i(store.rows_left),
      .columns_left_i(store.columns_left),
      .next_i(read && last_ask),
      .out_height_i(out_height_q),
      .out_width_i(out_width_q),
      .step_x_i(pool ? RowBits'(2) : RowBits'(1)),
      .wrap_y_i(pool ? pool_wrap_y_q : RowBits'(1)),
      .wrap_n_i(pool ? pool_wrap_n_q : RowBits'(1)),
      .place_o(row)
  );

  logic operand_request;
  logic [31:0] operand_address;
  logic [Columns*32-1:0] operand;
  mmu_operand #(
      .Columns(Columns)
  ) u_operand (
      .clk_i,
      .clear_i,
      .word_i,
      .set_i(pop_set_operand),
      .start_i(pop_store &&
               (store.flags.residual || store.flags.select)),
      .out_height_i(out_height_q),
      .out_width_i(out_width_q),
      .request_o(operand_request),
      .request_address_o(operand_address),
      .grant_i(operand_grant_i && !loading && !vector_busy),
      .arrival_i(operand_arrival_i && !loading && !vector_busy),
      .arrival_data_i(operand_data_i),
      .ready_o(operand_ready),
      .read_i(read && last_ask && with_operand),
      .data_o(operand)
  );
  logic read_last;
  assign read_last = !pool || (read_tap_q == 2'd3);
  if (PeLatency == 1) begin : gen_one_stage
    assign output_ends = read_valid_q && read_last;
    mmu_output #(
        .Columns(Columns),
        .PeKind(PeKind)
    ) u_output (
        .clk_i,
        .columns_i(columns_q),
        .registers_write_i(registers_write),
        .registers_file_i(file_q),
        .registers_data_i(operand_data_i),
        .valid_i(read_valid_q && output_ready),
        .first_i(read_tap_q == 2'd0),
        .last_i(read_last),
        .flags_i(flags_q),
        .data_i(read_data_i),
        .operand_i(operand),
        .data_o(output_data)
    );
  end else begin : gen_stages
    mmu_output_stages #(
        .Columns(Columns),
        .PeKind(PeKind)
    ) u_output (
        .clk_i,
        .clear_i,
        .columns_i(columns_q),
        .registers_write_i(registers_write),
        .registers_file_i(file_q),
        .registers_data_i(operand_data_i),
        .valid_i(read_valid_q),
        .first_i(read_tap_q == 2'd0),
        .last_i(read_last),
        .flags_i(flags_q),
        .data_i(read_data_i),
        .operand_i(operand),
        .step_i(output_ready),
        .ends_o(output_ends),
        .data_o(output_data)
    );
  end

  always_ff @(posedge clk_i) begin
    if (pop_set) begin
      out_height_q <= set_output.out_height;
      out_width_q <= set_output.out_width;
      step_x_q <= set_output.step_x;
      wrap_y_q <= set_output.wrap_y;
      wrap_n_q <= set_output.wrap_n;
      pool_pitch_q <= set_output.pool_pitch[RowBits-1:0];
      pool_wrap_y_q <= set_output.pool_wrap_y[RowBits-1:0];
      pool_wrap_n_q <= set_output.pool_wrap_n[RowBits-1:0];
    end
    if (pop_o) signal_q <= instruction.signal;
    if (pop_load) begin
      columns_q <= load_registers.columns;
      file_q <= load_registers.file;
      load_address_q <= load_registers.address;
      load_pitch_q <= load_registers.pitch;
    end else begin
      if (operand_grant_i) load_address_q <= load_address_q + load_pitch_q;
      if (registers_write) file_q <= file_q + 2'd1;
    end
    if (pop_store) begin
      flags_q <= store.flags;
      columns_q <= store.columns;
      log2_group_q <= store.log2_group;
      tap_q <= '0;
      asks_left_q <= store.count;
      grants_left_q <= store.count;
    end else begin
      if (read) begin
        tap_q <= last_ask ? 2'd0 : tap_q + 2'd1;
        read_tap_q <= tap_q;
        if (last_ask) asks_left_q <= asks_left_q - 16'd1;
      end
      if (grant) grants_left_q <= grants_left_q - 16'd1;
    end
    if (clear_i) begin
      store_q <= 1'b0;
      load_asks_q <= '0;
      load_answers_q <= '0;
      read_valid_q <= 1'b0;
      output_valid_q <= 1'b0;
    end else begin
      if (pop_store) store_q <= 1'b1;
      else if (last_grant) store_q <= 1'b0;
      if (pop_load) begin
        load_asks_q <= load_registers.more + 2'd1;
        load_answers_q <= load_registers.more + 2'd1;
      end else if (loading) begin
        load_asks_q <= load_asks_q - 2'(operand_grant_i);
        load_answers_q <= load_answers_q - 2'(operand_arrival_i);
      end
      if (read) read_valid_q <= 1'b1;
      else if (output_ready) read_valid_q <= 1'b0;
      port_makes_the_pipeline_wait : cover (output_ends && !output_ready);
      load_makes_the_position_wait : cover (buffer_request_o && !grant);
      operand_makes_the_reads_wait : cover (store_q && (asks_left_q != '0) && last_ask &&
                                            with_operand && !operand_ready);
      if (output_ends && output_ready) output_valid_q <= 1'b1;
      else if (grant) output_valid_q <= 1'b0;
    end
  end

  logic [15:0] bits_bytes, value_bytes;  // of a position's mask, of its values
  assign bits_bytes = (columns_q + 16'd7) >> 3;
  assign value_bytes = columns_q << (narrow ? NARROW_SHIFT : 2);
  assign request_o = (output_valid_q && !flags_q.buffer) || vector_request;
  assign request_address_o = vector_busy ? vector_address : place;
  assign request_data_o = vector_busy ? vector_data : output_data;
  assign buffer_request_o = output_valid_q && flags_q.buffer;
  assign buffer_log2_group_o = log2_group_q;
  assign request_bytes_o = vector_busy ? vector_bytes : mask ? bits_bytes : value_bytes;
  assign operand_request_o = (load_asks_q != '0) || operand_request || vector_reads;
  assign operand_address_o = vector_busy ? vector_address
                             : loading ? load_address_q : operand_address;
  assign operand_bytes_o = vector_busy ? vector_bytes
                           : loading ? columns_q << 2 : select ? bits_bytes : value_bytes;
  assign quiet_o = idle;
  assign registers_write = loading && operand_arrival_i;
  assign sets = pop_set || pop_set_operand;
  assign done_o = last_grant || (registers_write && (load_answers_q == 2'd1)) || sets ||
                  vector_done;
  assign give_o = sets ? instruction.signal : done_o ? signal_q : 4'b0000;
  assign read_o = read || vector_read;
  assign read_row_o = vector_busy ? vector_row
                                  : row + RowBits'(tap_q[0]) + (tap_q[1] ? pool_pitch_q : '0);
  assign columns_o = vector_busy ? 16'd0 : columns_q;
  assign pool_o = store_q && pool;
endmodule
