// The unified buffer's write port. A row that a load brings cannot wait. A store's position can: it
// is granted in a cycle without one. A group, of 2^log2_group elements or of Rows where those are
// more, is repeated over the banks to fill a buffer row. Combinational.
// SPDX-License-Identifier: Apache-2.0
module mmu_fill #(
    parameter int unsigned Rows = 4,
    parameter int unsigned BufferRows = 64,
    parameter int unsigned ElementBits = 16
) (
    // From the load unit.
    input logic load_i,
    input logic [$clog2(BufferRows)-1:0] load_row_i,
    input logic [3:0] load_log2_group_i,
    input logic [Rows*ElementBits-1:0] load_data_i,
    // From the store unit: narrow values, the first ones of a group. The others become zero.
    input logic store_i,
    output logic store_grant_o,
    input logic [$clog2(BufferRows)-1:0] store_row_i,
    input logic [3:0] store_log2_group_i,
    input logic [15:0] store_columns_i,
    input logic [Rows*ElementBits-1:0] store_data_i,
    // To the banks.
    output logic write_o,
    output logic [$clog2(BufferRows)-1:0] write_row_o,
    output logic [Rows*ElementBits-1:0] write_data_o
);
  localparam int unsigned LaneBits = $clog2(Rows);

  logic [LaneBits-1:0] lane_mask;
  assign store_grant_o = store_i && !load_i;
  assign write_o = load_i || store_i;
  assign write_row_o = load_i ? load_row_i : store_row_i;
  assign lane_mask = ~({LaneBits{1'b1}} << (load_i ? load_log2_group_i : store_log2_group_i));

  always_comb begin : spread
    // verilator tracing_off
    int unsigned r;
    logic [LaneBits-1:0] element;
    logic [Rows*ElementBits-1:0] group;
    // verilator tracing_on
    r = 0;
    element = '0;
    group = load_data_i;
    if (store_grant_o) begin
      group = store_data_i;
      for (r = 0; r < Rows; r++) begin
        if (16'(r) >= store_columns_i) group[r*ElementBits+:ElementBits] = '0;
      end
    end
    write_data_o = group;
    if (write_o && (lane_mask != '1)) begin
      for (r = 0; r < Rows; r++) begin
        element = r[LaneBits-1:0] & lane_mask;
        write_data_o[r*ElementBits+:ElementBits] = group[32'(element)*ElementBits+:ElementBits];
      end
    end
  end
endmodule
