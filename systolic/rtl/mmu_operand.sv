// The second operand of a store: a row of it for each position, read from DRAM ahead of the output
// unit by up to 64 rows. A row that arrives in cycle a can be taken from a + 1 on, and is shown in
// the cycle after that.
// SPDX-License-Identifier: Apache-2.0
module mmu_operand #(
    parameter int unsigned Columns = 4
) (
    input logic clk_i,
    input logic clear_i,
    // Head of the queue: SetOperand, or a Store that has an operand.
    // verilator lint_off UNUSEDSIGNAL
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
    // verilator lint_on UNUSEDSIGNAL
    input logic set_i,
    input logic start_i,
    input logic [15:0] out_height_i,  // of SetOutput
    input logic [15:0] out_width_i,
    // To the DRAM port.
    output logic request_o,
    output logic [31:0] request_address_o,
    input logic grant_i,
    input logic arrival_i,
    input logic [Columns*32-1:0] arrival_data_i,
    // To the output unit.
    output logic ready_o,  // the next row is there
    input logic read_i,
    output logic [Columns*32-1:0] data_o
);
  localparam int unsigned Depth = 64;

  logic [31:0] step_x_q, wrap_y_q, wrap_n_q;
  logic [15:0] asks_left_q;
  logic [6:0] taken_q;  // rows asked for that have not been read
  logic [6:0] stored_q;
  logic [5:0] write_q, read_q;
  logic [Columns*32-1:0] memory_q[Depth];
  logic [Columns*32-1:0] data_q;

  mmu_walk u_address (
      .clk_i,
      .start_i,
      .first_i(word_i[mmu_pkg::STORE_OPERAND_LSB+:32]),
      .rows_left_i(word_i[mmu_pkg::STORE_ROWS_LEFT_LSB+:16]),
      .columns_left_i(word_i[mmu_pkg::STORE_COLUMNS_LEFT_LSB+:16]),
      .next_i(grant_i),
      .out_height_i,
      .out_width_i,
      .step_x_i(step_x_q),
      .wrap_y_i(wrap_y_q),
      .wrap_n_i(wrap_n_q),
      .place_o(request_address_o)
  );

  always_ff @(posedge clk_i) begin
    if (set_i) begin
      step_x_q <= word_i[mmu_pkg::SET_OPERAND_STEP_X_LSB+:32];
      wrap_y_q <= word_i[mmu_pkg::SET_OPERAND_WRAP_Y_LSB+:32];
      wrap_n_q <= word_i[mmu_pkg::SET_OPERAND_WRAP_N_LSB+:32];
    end
    if (arrival_i) memory_q[write_q] <= arrival_data_i;
    if (read_i) data_q <= memory_q[read_q];
    if (clear_i) begin
      asks_left_q <= '0;
      taken_q <= '0;
      stored_q <= '0;
      write_q <= '0;
      read_q <= '0;
    end else begin
      if (start_i) asks_left_q <= word_i[mmu_pkg::STORE_COUNT_LSB+:16];
      else if (grant_i) asks_left_q <= asks_left_q - 16'd1;
      taken_q <= taken_q + 7'(grant_i) - 7'(read_i);
      stored_q <= stored_q + 7'(arrival_i) - 7'(read_i);
      write_q <= write_q + 6'(arrival_i);
      read_q <= read_q + 6'(read_i);
      operands_were_asked_for : assert (!(arrival_i && (taken_q == stored_q)));
      operands_have_arrived : assert (!(read_i && !ready_o));
    end
  end

  assign request_o = (asks_left_q != '0) && (taken_q != 7'(Depth));
  assign ready_o = stored_q != '0;
  assign data_o = data_q;
endmodule
