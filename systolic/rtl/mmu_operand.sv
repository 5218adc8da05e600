// The second operand of a store: a row of it for each position, read from DRAM ahead of the output
// unit by up to 64 rows. A row that arrives in cycle a is available from a + 1 on, and appears in
// the cycle after that.
// SPDX-License-Identifier: Apache-2.0
module mmu_operand #(
    parameter int unsigned Columns = 4
) (
    input logic clk_i,
    input logic clear_i,
    // Head of the queue: SetOperand, or a Store that has an operand.
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] word_i,
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
  mmu_pkg::store_t store;
  mmu_pkg::set_operand_t set_operand;
  assign store = word_i;
  assign set_operand = word_i;
  localparam int unsigned Depth = 64;

  logic [31:0] step_x_q, wrap_y_q, wrap_n_q;
  logic [15:0] asks_left_q;
  logic [6:0] taken_q;  // rows asked for that have not been read
  logic [6:0] stored_q;
  logic [5:0] write_q, read_q;

  mmu_walk u_address (
      .clk_i,
      .start_i,
      .first_i(store.operand),
      .rows_left_i(store.rows_left),
      .columns_left_i(store.columns_left),
      .next_i(grant_i),
      .out_height_i,
      .out_width_i,
      .step_x_i(step_x_q),
      .wrap_y_i(wrap_y_q),
      .wrap_n_i(wrap_n_q),
      .place_o(request_address_o)
  );

  mmu_sram_1r1w #(
      .Words(Depth),
      .Bits(Columns * 32)
  ) u_rows (
      .clk_i,
      .write_i(arrival_i),
      .write_row_i(write_q),
      .write_data_i(arrival_data_i),
      .read_i,
      .read_row_i(read_q),
      .read_data_o(data_o)
  );

  always_ff @(posedge clk_i) begin
    if (set_i) begin
      step_x_q <= set_operand.step_x;
      wrap_y_q <= set_operand.wrap_y;
      wrap_n_q <= set_operand.wrap_n;
    end
    if (clear_i) begin
      asks_left_q <= '0;
      taken_q <= '0;
      stored_q <= '0;
      write_q <= '0;
      read_q <= '0;
    end else begin
      if (start_i) asks_left_q <= store.count;
      else if (grant_i) asks_left_q <= asks_left_q - 16'd1;
      taken_q <= taken_q + 7'(grant_i) - 7'(read_i);
      stored_q <= stored_q + 7'(arrival_i) - 7'(read_i);
      write_q <= write_q + 6'(arrival_i);
      read_q <= read_q + 6'(read_i);
      operands_were_asked_for : assert (!(arrival_i && (taken_q == stored_q)));
      operands_have_arrived : assert (!(read_i && !ready_o));
      operand_grants_were_asked_for : assert (!(grant_i && !request_o));
      operands_stored_were_taken : assert ((stored_q <= taken_q) && (taken_q <= 7'(Depth)));
      operands_run_out : cover ((asks_left_q != '0) && (taken_q == 7'(Depth)));
    end
  end

  assign request_o = (asks_left_q != '0) && (taken_q != 7'(Depth));
  assign ready_o = stored_q != '0;
endmodule
