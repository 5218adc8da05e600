// Reads lines of rows from DRAM into a memory: the DMA engine of the load and of the weights unit.
// Requests one row per cycle at most, keeps at most 128 outstanding, and says for each arriving row
// where it goes. Idle, and ready for the next job, in the cycle after the last grant.
// SPDX-License-Identifier: Apache-2.0
module mmu_reader #(
    parameter int unsigned RowBits = 13,
    parameter int unsigned TagBits = 8
) (
    input logic clk_i,
    input logic clear_i,
    // A job: `lines` lines of `units` rows of `bytes` bytes.
    input logic start_i,
    input logic [31:0] address_i,
    input logic [31:0] pitch_i,
    input logic [15:0] bytes_i,
    input logic [31:0] units_i,
    input logic [31:0] lines_i,
    input logic [RowBits-1:0] row_i,
    input logic [RowBits-1:0] row_pitch_i,
    input logic [TagBits-1:0] tag_i,
    output logic ready_o,
    output logic quiet_o,  // ready, and nothing outstanding
    // To the DRAM port.
    output logic request_o,
    output logic [31:0] request_address_o,
    output logic [15:0] request_bytes_o,
    input logic grant_i,
    // For the row that arrives in this cycle.
    input logic arrival_i,
    output logic [RowBits-1:0] arrival_row_o,
    output logic [TagBits-1:0] arrival_tag_o,
    output logic arrival_last_o
);
  localparam int unsigned Outstanding = 128;

  logic busy_q;
  logic [31:0] address_q, line_address_q, pitch_q, units_q, units_left_q, lines_left_q;
  logic [15:0] bytes_q;
  logic [RowBits-1:0] row_q, line_row_q, row_pitch_q;
  logic [TagBits-1:0] tag_q;
  logic line_ends, job_ends;

  // Rows on their way: {last, tag, row}, a ring.
  logic [RowBits+TagBits:0] pending_q[Outstanding];
  logic [6:0] granted_q, arrived_q;
  logic [7:0] outstanding_q;

  assign line_ends = units_left_q == 32'd1;
  assign job_ends = line_ends && (lines_left_q == 32'd1);

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      address_q <= address_i;
      line_address_q <= address_i + pitch_i;
      pitch_q <= pitch_i;
      bytes_q <= bytes_i;
      units_q <= units_i;
      units_left_q <= units_i;
      lines_left_q <= lines_i;
      row_q <= row_i;
      line_row_q <= row_i + row_pitch_i;
      row_pitch_q <= row_pitch_i;
      tag_q <= tag_i;
    end else if (grant_i) begin
      if (line_ends) begin
        address_q <= line_address_q;
        line_address_q <= line_address_q + pitch_q;
        row_q <= line_row_q;
        line_row_q <= line_row_q + row_pitch_q;
        units_left_q <= units_q;
        lines_left_q <= lines_left_q - 32'd1;
      end else begin
        address_q <= address_q + 32'(bytes_q);
        row_q <= row_q + 1'b1;
        units_left_q <= units_left_q - 32'd1;
      end
    end
    if (grant_i) pending_q[granted_q] <= {job_ends, tag_q, row_q};
    if (clear_i) begin
      busy_q <= 1'b0;
      granted_q <= '0;
      arrived_q <= '0;
      outstanding_q <= '0;
    end else begin
      if (start_i) busy_q <= 1'b1;
      else if (grant_i && job_ends) busy_q <= 1'b0;
      granted_q <= granted_q + 7'(grant_i);
      arrived_q <= arrived_q + 7'(arrival_i);
      outstanding_q <= outstanding_q + 8'(grant_i) - 8'(arrival_i);
      job_starts_when_ready : assert (!(start_i && busy_q));
      arrivals_were_asked_for : assert (!(arrival_i && (outstanding_q == '0)));
      grants_were_asked_for : assert (!(grant_i && !request_o));
      requests_fit_the_table : assert (outstanding_q <= 8'(Outstanding));
      requests_run_out : cover (busy_q && (outstanding_q == 8'(Outstanding)));
      line_follows_line : cover (grant_i && line_ends && !job_ends);
      next_job_starts_before_the_last_arrival : cover (start_i && (outstanding_q != '0));
    end
  end

`ifdef FORMAL
  // Invariants that prove the rules above.
  always_ff @(posedge clk_i) if (!clear_i) assert (granted_q - arrived_q == outstanding_q[6:0]);
`endif

  assign ready_o = !busy_q;
  assign quiet_o = !busy_q && (outstanding_q == '0);
  assign request_o = busy_q && (outstanding_q != 8'(Outstanding));
  assign request_address_o = address_q;
  assign request_bytes_o = bytes_q;
  assign {arrival_last_o, arrival_tag_o, arrival_row_o} = pending_q[arrived_q];
endmodule
