// The output unit for PEs of several cycles: the work of mmu_output in one cycle is divided into
// eleven stages, so that its clock is as short as that of the PEs. All stages move on with step_i.
// The store unit withholds it while the DRAM port is busy and the last stage's position would
// reach it.
// SPDX-License-Identifier: Apache-2.0
module mmu_output_stages #(
    parameter int unsigned Columns = 4,
    parameter int unsigned PeKind = 0  // 0: bf16, 1: int8
) (
    input logic clk_i,
    input logic clear_i,
    input logic [15:0] columns_i,  // in use: the first ones
    // LoadRegisters: those of a file are written.
    input logic registers_write_i,
    input logic [1:0] registers_file_i,  // 0: bias, 1: multiplier, 2: shift
    input logic [Columns*32-1:0] registers_data_i,
    // A row of the accumulators. The output of a position is the result of its last row.
    input logic valid_i,
    input logic first_i,
    input logic last_i,
    input logic [15:0] flags_i,  // of the Store: mmu_pkg::store_flags_t
    input logic [Columns*32-1:0] data_i,
    input logic [Columns*32-1:0] operand_i,  // with the last row
    input logic step_i,
    output logic ends_o,  // the next step shows a position
    output logic [Columns*32-1:0] data_o  // without gaps
);
  localparam int unsigned MASK_BITS = (Columns + 7) / 8 * 8;

  mmu_pkg::store_flags_t flags;
  logic bias, relu, narrow, scale, pool, mask, residual, select;
  assign flags = flags_i;
  assign bias = flags.bias;
  assign relu = flags.relu;
  assign narrow = flags.narrow;
  assign scale = flags.scale;
  assign pool = flags.pool;
  assign mask = flags.mask;
  assign residual = flags.residual;
  assign select = flags.select;

  // Bit k: the row that stage k + 1 shows.
  logic [9:0] valid_q, last_q;
  logic [5:0] first_q;
  logic moves;
  assign moves = step_i && (valid_i || (valid_q != '0));
  assign ends_o = valid_q[9] && last_q[9];
  always_ff @(posedge clk_i) begin
    if (moves) begin
      first_q <= {first_q[4:0], first_i};
      last_q <= {last_q[8:0], last_i};
    end
    if (clear_i) valid_q <= '0;
    else if (moves) valid_q <= {valid_q[8:0], valid_i};
  end

  logic [Columns*32-1:0] values;
  for (genvar c = 0; c < Columns; c++) begin : gen_column
    logic [31:0] operand, value;
    logic selected;
    if (PeKind == 0) begin : gen_bf16
      assign operand = narrow ? {operand_i[c*16+:16], 16'd0} : operand_i[c*32+:32];
    end else begin : gen_int8
      assign operand = narrow ? 32'($signed(operand_i[c*8+:8])) : operand_i[c*32+:32];
    end
    mmu_output_column #(
        .PeKind(PeKind)
    ) u_column (
        .clk_i,
        .write_i(registers_write_i && (16'(c) < columns_i)),
        .file_i(registers_file_i),
        .register_i(registers_data_i[c*32+:32]),
        .step_i(moves),
        .scale_i(scale),
        .bias_i(bias),
        .pool_i(pool),
        .residual_i(residual),
        .data_i(data_i[c*32+:32]),
        .operand_i(operand),
        .selected_i(operand_i[c]),
        .pool_first_i(first_q[5]),
        .value_o(value),
        .selected_o(selected)
    );
    assign values[c*32+:32] =
        (select && !selected) ? '0
        : relu ? mmu_arithmetic_pkg::rectify(value, PeKind == 0) : value;
  end

  // Stage 11: results without gaps.
  logic [Columns*32-1:0] data_q;
  always_ff @(posedge clk_i) begin : results
    int unsigned c;
    if (moves && ends_o) begin
      if (mask) data_q[MASK_BITS-1:0] <= '0;
      for (c = 0; c < Columns; c++) begin
        if (mask) begin
          data_q[c] <= (c < 32'(columns_i)) &&
                       mmu_arithmetic_pkg::greater(values[c*32+:32], 32'd0, PeKind == 0);
        end else if (!narrow) data_q[c*32+:32] <= values[c*32+:32];
        else if (PeKind == 0) data_q[c*16+:16] <= mmu_arithmetic_pkg::narrow(values[c*32+:32]);
        else data_q[c*8+:8] <= mmu_arithmetic_pkg::narrow_int8(values[c*32+:32]);
      end
    end
  end
  assign data_o = data_q;
endmodule
