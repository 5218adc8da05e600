// The ports to the DRAM, one for each unit: a request is granted in a cycle with the request and
// ready high. It comes from registers, so ready may depend on it. Answers come in order.
// SPDX-License-Identifier: Apache-2.0
    output logic load_request_o,
    output logic [31:0] load_address_o,
    output logic [15:0] load_bytes_o,
    input logic load_ready_i,
    input logic load_valid_i,
    input logic [Rows*((PeKind == 0) ? 16 : 8)-1:0] load_data_i,
    output logic weights_request_o,
    output logic [31:0] weights_address_o,
    output logic [15:0] weights_bytes_o,
    input logic weights_ready_i,
    input logic weights_valid_i,
    input logic [Columns*((PeKind == 0) ? 16 : 8)-1:0] weights_data_i,
    output logic store_request_o,  // writes
    output logic [31:0] store_address_o,
    output logic [15:0] store_bytes_o,
    output logic [Columns*32-1:0] store_data_o,
    input logic store_ready_i,
    output logic operand_request_o,  // of the store unit: column registers, second operands
    output logic [31:0] operand_address_o,
    output logic [15:0] operand_bytes_o,
    input logic operand_ready_i,
    input logic operand_valid_i,
    input logic [Columns*32-1:0] operand_data_i
