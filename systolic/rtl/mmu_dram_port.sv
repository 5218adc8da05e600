// The DRAM port: one request per cycle, by fixed priority weights, store, load. Combinational.
// SPDX-License-Identifier: Apache-2.0
module mmu_dram_port (
    input logic load_request_i,
    input logic [31:0] load_address_i,
    input logic [15:0] load_bytes_i,
    output logic load_grant_o,
    input logic weights_request_i,
    input logic [31:0] weights_address_i,
    input logic [15:0] weights_bytes_i,
    output logic weights_grant_o,
    input logic store_request_i,
    input logic store_write_i,
    input logic [31:0] store_address_i,
    input logic [15:0] store_bytes_i,
    output logic store_grant_o,
    input logic ready_i,
    output logic valid_o,
    output logic [1:0] unit_o,
    output logic write_o,
    output logic [31:0] address_o,
    output logic [15:0] bytes_o
);
  assign weights_grant_o = ready_i && weights_request_i;
  assign store_grant_o = ready_i && store_request_i && !weights_request_i;
  assign load_grant_o = ready_i && load_request_i && !store_request_i && !weights_request_i;

  assign valid_o = weights_request_i || store_request_i || load_request_i;
  assign write_o = !weights_request_i && store_request_i && store_write_i;
  always_comb begin
    if (weights_request_i) begin
      unit_o = 2'(mmu_pkg::UNIT_WEIGHTS);
      address_o = weights_address_i;
      bytes_o = weights_bytes_i;
    end else if (store_request_i) begin
      unit_o = 2'(mmu_pkg::UNIT_STORE);
      address_o = store_address_i;
      bytes_o = store_bytes_i;
    end else begin
      unit_o = 2'(mmu_pkg::UNIT_LOAD);
      address_o = load_address_i;
      bytes_o = load_bytes_i;
    end
  end
endmodule
