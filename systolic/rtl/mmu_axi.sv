// The MMU behind three AXI4 masters with 128 bits of data: its load and weights ports read, its
// store and operand ports are one master that writes and reads. Constant signals have no ports:
// AxSIZE is 4, AxBURST INCR, AxID and AxPROT are 0, AxCACHE is 4'b0011. RLAST is not needed.
//
// The machine takes a store as done when its port takes the last row. A later read of the same
// block of MaxBeats beats waits here until the memory has acknowledged the write.
// SPDX-License-Identifier: Apache-2.0
module mmu_axi #(
    parameter int unsigned MaxBeats = 16,  // of a burst: a power of two, 2 to 256
    parameter int unsigned ReadRows = 128,  // outstanding at each port, a power of two
    parameter int unsigned WriteBursts = 16,  // outstanding, a power of two
    `include "mmu_parameters.svh"
) (
    input logic clk_i,
    input logic rst_ni,  // synchronous
    input logic start_i,  // when not busy: the next cycle is cycle 0 of a program
    input logic [1:0] weight_scheme_i,
    output logic [2:0] status_o,
    output logic busy_o,  // a program runs, or the memory owes an answer
    output logic error_o,  // the memory has reported an error since the start
    // The program: an AXI4 stream of instructions.
    input logic instruction_valid_i,
    input logic [mmu_pkg::INSTRUCTION_BITS-1:0] instruction_i,
    output logic instruction_ready_o,
    output logic load_arvalid_o,
    input logic load_arready_i,
    output logic [31:0] load_araddr_o,
    output logic [7:0] load_arlen_o,
    input logic load_rvalid_i,
    output logic load_rready_o,
    input logic [127:0] load_rdata_i,
    input logic [1:0] load_rresp_i,
    output logic weights_arvalid_o,
    input logic weights_arready_i,
    output logic [31:0] weights_araddr_o,
    output logic [7:0] weights_arlen_o,
    input logic weights_rvalid_i,
    output logic weights_rready_o,
    input logic [127:0] weights_rdata_i,
    input logic [1:0] weights_rresp_i,
    output logic store_arvalid_o,
    input logic store_arready_i,
    output logic [31:0] store_araddr_o,
    output logic [7:0] store_arlen_o,
    input logic store_rvalid_i,
    output logic store_rready_o,
    input logic [127:0] store_rdata_i,
    input logic [1:0] store_rresp_i,
    output logic store_awvalid_o,
    input logic store_awready_i,
    output logic [31:0] store_awaddr_o,
    output logic [7:0] store_awlen_o,
    output logic store_wvalid_o,
    input logic store_wready_i,
    output logic [127:0] store_wdata_o,
    output logic [15:0] store_wstrb_o,
    output logic store_wlast_o,
    input logic store_bvalid_i,
    output logic store_bready_o,
    input logic [1:0] store_bresp_i,
    output logic [3:0] trace_start_o,
    output logic [3:0] trace_end_o,
    input logic [4:0] counter_i,
    output logic [63:0] counter_o
);
  localparam int unsigned ElementBytes = (PeKind == 0) ? 2 : 1;
  localparam int unsigned BlockBits = 28 - $clog2(MaxBeats);
  localparam int unsigned LOAD = 0, WEIGHTS = 1, OPERAND = 2;

  if ((MaxBeats < 2) || (MaxBeats > 256) || ((MaxBeats & (MaxBeats - 1)) != 0) ||
      (ReadRows < 2) || ((ReadRows & (ReadRows - 1)) != 0) ||
      (WriteBursts < 2) || ((WriteBursts & (WriteBursts - 1)) != 0)) begin : gen_parameters
    $error("mmu_axi: MaxBeats (2 to 256), ReadRows and WriteBursts are powers of two");
  end

  logic clear, error_q, store_busy, store_error;
  logic [2:0] read_busy, read_error, read_waits;
  logic [3*BlockBits-1:0] read_next;
  assign clear = !rst_ni;

  logic load_request, load_ready, load_valid;
  logic [31:0] load_address;
  logic [15:0] load_bytes;
  logic [Rows*ElementBytes*8-1:0] load_data;
  logic weights_request, weights_ready, weights_valid;
  logic [31:0] weights_address;
  logic [15:0] weights_bytes;
  logic [Columns*ElementBytes*8-1:0] weights_data;
  logic store_request, store_ready;
  logic [31:0] store_address;
  logic [15:0] store_bytes;
  logic [Columns*32-1:0] store_data;
  logic operand_request, operand_ready, operand_valid;
  logic [31:0] operand_address;
  logic [15:0] operand_bytes;
  logic [Columns*32-1:0] operand_data;

  mmu_top #(
      `include "mmu_parameter_values.svh"
  ) u_mmu (
      .clk_i,
      .rst_ni,
      .start_i,
      .weight_scheme_i,
      .status_o,
      .instruction_valid_i,
      .instruction_i,
      .instruction_ready_o,
      .load_request_o(load_request),
      .load_address_o(load_address),
      .load_bytes_o(load_bytes),
      .load_ready_i(load_ready),
      .load_valid_i(load_valid),
      .load_data_i(load_data),
      .weights_request_o(weights_request),
      .weights_address_o(weights_address),
      .weights_bytes_o(weights_bytes),
      .weights_ready_i(weights_ready),
      .weights_valid_i(weights_valid),
      .weights_data_i(weights_data),
      .store_request_o(store_request),
      .store_address_o(store_address),
      .store_bytes_o(store_bytes),
      .store_data_o(store_data),
      .store_ready_i(store_ready),
      .operand_request_o(operand_request),
      .operand_address_o(operand_address),
      .operand_bytes_o(operand_bytes),
      .operand_ready_i(operand_ready),
      .operand_valid_i(operand_valid),
      .operand_data_i(operand_data),
      .trace_start_o,
      .trace_end_o,
      .counter_i,
      .counter_o
  );

  mmu_axi_read #(
      .RowBytes(Rows * ElementBytes),
      .Outstanding(ReadRows),
      .MaxBeats(MaxBeats)
  ) u_load (
      .clk_i,
      .clear_i(clear),
      .request_i(load_request),
      .address_i(load_address),
      .bytes_i(load_bytes),
      .ready_o(load_ready),
      .valid_o(load_valid),
      .data_o(load_data),
      .busy_o(read_busy[LOAD]),
      .error_o(read_error[LOAD]),
      .next_o(read_next[LOAD*BlockBits+:BlockBits]),
      .wait_i(read_waits[LOAD]),
      .arvalid_o(load_arvalid_o),
      .arready_i(load_arready_i),
      .araddr_o(load_araddr_o),
      .arlen_o(load_arlen_o),
      .rvalid_i(load_rvalid_i),
      .rready_o(load_rready_o),
      .rdata_i(load_rdata_i),
      .rresp_i(load_rresp_i)
  );
  mmu_axi_read #(
      .RowBytes(Columns * ElementBytes),
      .Outstanding(ReadRows),
      .MaxBeats(MaxBeats)
  ) u_weights (
      .clk_i,
      .clear_i(clear),
      .request_i(weights_request),
      .address_i(weights_address),
      .bytes_i(weights_bytes),
      .ready_o(weights_ready),
      .valid_o(weights_valid),
      .data_o(weights_data),
      .busy_o(read_busy[WEIGHTS]),
      .error_o(read_error[WEIGHTS]),
      .next_o(read_next[WEIGHTS*BlockBits+:BlockBits]),
      .wait_i(read_waits[WEIGHTS]),
      .arvalid_o(weights_arvalid_o),
      .arready_i(weights_arready_i),
      .araddr_o(weights_araddr_o),
      .arlen_o(weights_arlen_o),
      .rvalid_i(weights_rvalid_i),
      .rready_o(weights_rready_o),
      .rdata_i(weights_rdata_i),
      .rresp_i(weights_rresp_i)
  );
  mmu_axi_read #(
      .RowBytes(Columns * 4),
      .Outstanding(ReadRows),
      .MaxBeats(MaxBeats)
  ) u_operand (
      .clk_i,
      .clear_i(clear),
      .request_i(operand_request),
      .address_i(operand_address),
      .bytes_i(operand_bytes),
      .ready_o(operand_ready),
      .valid_o(operand_valid),
      .data_o(operand_data),
      .busy_o(read_busy[OPERAND]),
      .error_o(read_error[OPERAND]),
      .next_o(read_next[OPERAND*BlockBits+:BlockBits]),
      .wait_i(read_waits[OPERAND]),
      .arvalid_o(store_arvalid_o),
      .arready_i(store_arready_i),
      .araddr_o(store_araddr_o),
      .arlen_o(store_arlen_o),
      .rvalid_i(store_rvalid_i),
      .rready_o(store_rready_o),
      .rdata_i(store_rdata_i),
      .rresp_i(store_rresp_i)
  );
  mmu_axi_write #(
      .RowBytes(Columns * 4),
      .Outstanding(WriteBursts),
      .MaxBeats(MaxBeats),
      .Reads(3)
  ) u_store (
      .clk_i,
      .clear_i(clear),
      .request_i(store_request),
      .address_i(store_address),
      .bytes_i(store_bytes),
      .data_i(store_data),
      .ready_o(store_ready),
      .busy_o(store_busy),
      .error_o(store_error),
      .reads_i(read_next),
      .wait_o(read_waits),
      .awvalid_o(store_awvalid_o),
      .awready_i(store_awready_i),
      .awaddr_o(store_awaddr_o),
      .awlen_o(store_awlen_o),
      .wvalid_o(store_wvalid_o),
      .wready_i(store_wready_i),
      .wdata_o(store_wdata_o),
      .wstrb_o(store_wstrb_o),
      .wlast_o(store_wlast_o),
      .bvalid_i(store_bvalid_i),
      .bready_o(store_bready_o),
      .bresp_i(store_bresp_i)
  );

  logic started_q;
  always_ff @(posedge clk_i) begin
    if (clear) begin
      started_q <= 1'b0;
      error_q <= 1'b0;
    end else begin
      if (start_i) started_q <= 1'b1;
      error_q <= !start_i && (error_q || (read_error != '0) || store_error);
      programs_start_when_idle : assert (!(start_i && busy_o));
      writes_outlast_the_program : cover ((status_o != '0) && store_busy);
    end
  end
  assign error_o = error_q;
  assign busy_o = (started_q && (status_o == '0)) || (read_busy != '0) || store_busy;
endmodule
