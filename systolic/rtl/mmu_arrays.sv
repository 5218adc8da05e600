// Several arrays on one DRAM: `Arrays` times mmu_top, with a program each, and mmu_arbiter in front
// of the ports. Ports are those of mmu_top. All arrays start together.
// SPDX-License-Identifier: Apache-2.0
module mmu_arrays #(
    parameter int unsigned Arrays = 2,  // 2 to 8
    parameter int unsigned Reads = 256,  // outstanding at each port that reads, a power of two
    `include "mmu_parameters.svh"
) (
    input logic clk_i,
    input logic rst_ni,  // synchronous
    input logic start_i,
    input logic [1:0] weight_scheme_i,
    // By array.
    output logic [3*Arrays-1:0] status_o,
    input logic [Arrays-1:0] instruction_valid_i,
    input logic [mmu_pkg::INSTRUCTION_BITS*Arrays-1:0] instruction_i,
    output logic [Arrays-1:0] instruction_ready_o,
    output logic [4*Arrays-1:0] trace_start_o,
    output logic [4*Arrays-1:0] trace_end_o,
    // Counter 31 holds the cycles in which another array had the ports. The others are mmu_top's.
    input logic [4:0] counter_i,
    output logic [64*Arrays-1:0] counter_o,
    `include "mmu_dram_ports.svh"
);
  localparam int unsigned LOAD = 0, WEIGHTS = 1, STORE = 2, OPERAND = 3;
  localparam int unsigned PlaceBits = 32 + 16;  // an address and a number of bytes

  logic [4*Arrays-1:0] request, ready, valid;
  logic [4*PlaceBits*Arrays-1:0] places;  // by array and port
  logic [Columns*32*Arrays-1:0] data;
  logic [64*Arrays-1:0] waits;
  logic [$clog2(Arrays)-1:0] turn;

  mmu_arbiter #(
      .Arrays(Arrays),
      .Reads(Reads)
  ) u_arbiter (
      .clk_i,
      .clear_i(!rst_ni || start_i),
      .request_i(request),
      .ready_o(ready),
      .valid_o(valid),
      .request_o({operand_request_o, store_request_o, weights_request_o, load_request_o}),
      .ready_i({operand_ready_i, store_ready_i, weights_ready_i, load_ready_i}),
      .valid_i({operand_valid_i, 1'b0, weights_valid_i, load_valid_i}),
      .turn_o(turn),
      .waits_o(waits)
  );
  assign {operand_address_o, operand_bytes_o, store_address_o, store_bytes_o, weights_address_o,
          weights_bytes_o, load_address_o,
          load_bytes_o} = places[4*PlaceBits*32'(turn)+:4*PlaceBits];
  assign store_data_o = data[Columns*32*32'(turn)+:Columns*32];

  logic [63:0] counts[Arrays];
  logic shows_waits_q;
  always_ff @(posedge clk_i) shows_waits_q <= counter_i == 5'd31;

  for (genvar a = 0; a < Arrays; a++) begin : gen_array
    localparam int unsigned Place = 4 * PlaceBits * a;
    assign counter_o[64*a+:64] = shows_waits_q ? waits[64*a+:64] : counts[a];
    mmu_top #(
        `include "mmu_parameter_values.svh"
    ) u_mmu (
        .clk_i,
        .rst_ni,
        .start_i,
        .weight_scheme_i,
        .status_o(status_o[3*a+:3]),
        .instruction_valid_i(instruction_valid_i[a]),
        .instruction_i(instruction_i[mmu_pkg::INSTRUCTION_BITS*a+:mmu_pkg::INSTRUCTION_BITS]),
        .instruction_ready_o(instruction_ready_o[a]),
        .load_request_o(request[4*a+LOAD]),
        .load_address_o(places[Place+PlaceBits*LOAD+16+:32]),
        .load_bytes_o(places[Place+PlaceBits*LOAD+:16]),
        .load_ready_i(ready[4*a+LOAD]),
        .load_valid_i(valid[4*a+LOAD]),
        .load_data_i,
        .weights_request_o(request[4*a+WEIGHTS]),
        .weights_address_o(places[Place+PlaceBits*WEIGHTS+16+:32]),
        .weights_bytes_o(places[Place+PlaceBits*WEIGHTS+:16]),
        .weights_ready_i(ready[4*a+WEIGHTS]),
        .weights_valid_i(valid[4*a+WEIGHTS]),
        .weights_data_i,
        .store_request_o(request[4*a+STORE]),
        .store_address_o(places[Place+PlaceBits*STORE+16+:32]),
        .store_bytes_o(places[Place+PlaceBits*STORE+:16]),
        .store_data_o(data[Columns*32*a+:Columns*32]),
        .store_ready_i(ready[4*a+STORE]),
        .operand_request_o(request[4*a+OPERAND]),
        .operand_address_o(places[Place+PlaceBits*OPERAND+16+:32]),
        .operand_bytes_o(places[Place+PlaceBits*OPERAND+:16]),
        .operand_ready_i(ready[4*a+OPERAND]),
        .operand_valid_i(valid[4*a+OPERAND]),
        .operand_data_i,
        .trace_start_o(trace_start_o[4*a+:4]),
        .trace_end_o(trace_end_o[4*a+:4]),
        .counter_i,
        .counter_o(counts[a])
    );
  end
endmodule
