// The store unit: accumulators through the output unit to DRAM, one position per request, and the
// reads of the column registers. From the pop a position takes three cycles to the DRAM port:
// accumulator read, output unit, port; the pipeline waits when the port does.
// SPDX-License-Identifier: Apache-2.0
module mmu_store #(
    parameter int unsigned AccumulatorRows = 64,
    parameter int unsigned PeKind = 0  // 0: bf16, 1: int8
) (
    input logic clk_i,
    input logic clear_i,
    // Head of the queue.
    input logic valid_i,
    input logic tokens_i,  // the head's tokens are there
    // The wait mask is the dispatcher's; accumulator rows have been checked.
    // verilator lint_off UNUSEDSIGNAL
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic pop_o,
    output logic quiet_o,
    output logic done_o,  // an instruction ends with this cycle
    output logic [3:0] give_o,
    // DRAM port.
    output logic request_o,
    output logic request_write_o,
    output logic [31:0] request_address_o,
    output logic [15:0] request_bytes_o,
    input logic grant_i,
    input logic arrival_i,
    // Accumulators and output unit.
    output logic read_o,
    output logic [$clog2(AccumulatorRows)-1:0] read_row_o,
    output logic output_valid_o,
    output logic output_scale_o,
    output logic output_bias_o,
    output logic output_relu_o,
    output logic output_narrow_o,
    output logic [15:0] columns_o,
    output logic [1:0] registers_file_o
);
  localparam int unsigned RowBits = $clog2(AccumulatorRows);
  localparam int unsigned NARROW_SHIFT = (PeKind == 0) ? 1 : 0;  // log2 of a narrow value's bytes

  // SetOutput.
  logic [15:0] out_height_q, out_width_q;
  logic [31:0] step_x_q, wrap_y_q, wrap_n_q;
  // The instruction that runs.
  logic store_q, load_request_q, load_wait_q;
  logic with_scale_q, with_bias_q, with_relu_q, narrow_q;
  logic [1:0] file_q;
  logic [3:0] signal_q;
  logic [15:0] columns_q, asks_left_q, grants_left_q, rows_left_q, columns_left_q;
  logic [31:0] address_q;
  logic [RowBits-1:0] row_q;
  logic read_valid_q, output_valid_q;

  logic [7:0] opcode;
  logic idle, pop_store, pop_load, pop_set, output_free, last_grant;
  assign opcode = word_i[mmu_pkg::OPCODE_LSB+:8];
  assign idle = !store_q && !load_request_q && !load_wait_q;
  assign pop_o = valid_i && tokens_i && idle;
  assign pop_store = pop_o && (opcode == mmu_pkg::OP_STORE);
  assign pop_load = pop_o && (opcode == mmu_pkg::OP_LOAD_REGISTERS);
  assign pop_set = pop_o && (opcode == mmu_pkg::OP_SET_OUTPUT);

  assign output_free = !output_valid_q || grant_i;
  assign output_valid_o = read_valid_q && output_free;
  assign read_o = store_q && (asks_left_q != '0) && (!read_valid_q || output_free);
  assign last_grant = store_q && grant_i && (grants_left_q == 16'd1);

  always_ff @(posedge clk_i) begin
    if (pop_set) begin
      out_height_q <= word_i[mmu_pkg::SET_OUTPUT_OUT_HEIGHT_LSB+:16];
      out_width_q <= word_i[mmu_pkg::SET_OUTPUT_OUT_WIDTH_LSB+:16];
      step_x_q <= word_i[mmu_pkg::SET_OUTPUT_STEP_X_LSB+:32];
      wrap_y_q <= word_i[mmu_pkg::SET_OUTPUT_WRAP_Y_LSB+:32];
      wrap_n_q <= word_i[mmu_pkg::SET_OUTPUT_WRAP_N_LSB+:32];
    end
    if (pop_o) signal_q <= word_i[mmu_pkg::SIGNAL_LSB+:4];
    if (pop_load) begin
      columns_q <= word_i[mmu_pkg::LOAD_REGISTERS_COLUMNS_LSB+:16];
      address_q <= word_i[mmu_pkg::LOAD_REGISTERS_ADDRESS_LSB+:32];
      file_q <= word_i[mmu_pkg::LOAD_REGISTERS_FILE_LSB+:2];
    end
    if (pop_store) begin
      with_scale_q <= word_i[mmu_pkg::STORE_SCALE_LSB];
      with_bias_q <= word_i[mmu_pkg::STORE_BIAS_LSB];
      with_relu_q <= word_i[mmu_pkg::STORE_RELU_LSB];
      narrow_q <= word_i[mmu_pkg::STORE_NARROW_LSB];
      columns_q <= word_i[mmu_pkg::STORE_COLUMNS_LSB+:16];
      address_q <= word_i[mmu_pkg::STORE_ADDRESS_LSB+:32];
      rows_left_q <= word_i[mmu_pkg::STORE_ROWS_LEFT_LSB+:16];
      columns_left_q <= word_i[mmu_pkg::STORE_COLUMNS_LEFT_LSB+:16];
      row_q <= word_i[mmu_pkg::STORE_ACCUMULATOR_LSB+:RowBits];
      asks_left_q <= word_i[mmu_pkg::STORE_COUNT_LSB+:16];
      grants_left_q <= word_i[mmu_pkg::STORE_COUNT_LSB+:16];
    end else if (store_q) begin
      if (read_o) begin
        row_q <= row_q + 1'b1;
        asks_left_q <= asks_left_q - 16'd1;
      end
      if (grant_i) begin
        grants_left_q <= grants_left_q - 16'd1;
        if (columns_left_q > 16'd1) begin
          columns_left_q <= columns_left_q - 16'd1;
          address_q <= address_q + step_x_q;
        end else begin
          columns_left_q <= out_width_q;
          rows_left_q <= (rows_left_q > 16'd1) ? rows_left_q - 16'd1 : out_height_q;
          address_q <= address_q + ((rows_left_q > 16'd1) ? wrap_y_q : wrap_n_q);
        end
      end
    end
    if (clear_i) begin
      store_q <= 1'b0;
      load_request_q <= 1'b0;
      load_wait_q <= 1'b0;
      read_valid_q <= 1'b0;
      output_valid_q <= 1'b0;
    end else begin
      if (pop_store) store_q <= 1'b1;
      else if (last_grant) store_q <= 1'b0;
      if (pop_load) load_request_q <= 1'b1;
      else if (grant_i) load_request_q <= 1'b0;
      if (load_request_q && grant_i) load_wait_q <= 1'b1;
      else if (arrival_i) load_wait_q <= 1'b0;
      if (read_o) read_valid_q <= 1'b1;
      else if (output_free) read_valid_q <= 1'b0;
      if (output_valid_o) output_valid_q <= 1'b1;
      else if (grant_i) output_valid_q <= 1'b0;
      registers_were_asked_for : assert (!(arrival_i && !load_wait_q));
    end
  end

  assign request_o = output_valid_q || load_request_q;
  assign request_write_o = !load_request_q;
  assign request_address_o = address_q;
  assign request_bytes_o = columns_q << ((store_q && narrow_q) ? NARROW_SHIFT : 2);
  assign quiet_o = idle;
  assign done_o = last_grant || (load_wait_q && arrival_i) || pop_set;
  assign give_o = pop_set ? word_i[mmu_pkg::SIGNAL_LSB+:4] : done_o ? signal_q : 4'b0000;
  assign read_row_o = row_q;
  assign output_scale_o = with_scale_q;
  assign output_bias_o = with_bias_q;
  assign output_relu_o = with_relu_q;
  assign output_narrow_o = narrow_q;
  assign columns_o = columns_q;
  assign registers_file_o = file_q;
endmodule
