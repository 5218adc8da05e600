// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/seeded_faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"

namespace triptych::labs {
namespace {

using enum Place;
constexpr bool kShown = true, kHidden = false;

constexpr SeededFault kFaults[] = {
    // The handout's table has these, with the same numbers.
    {"group_of_one", Addresses, kShown, "taps", "mmu_lane",
     "((before_channel_i & group_mask_i) == group_mask_i)", "1'b1",
     "each channel lies in a buffer row of its own, not a group of them"},
    {"ties_away", Arithmetic, kShown, "sums", "mmu_arithmetic_pkg",
     "((sum & 32'h0000_017F) != 32'd0)", "1'b1",
     "a sum in the middle between two numbers goes up, not to the even one"},
    {"relu_hides_nan", Arithmetic, kShown, "output", "mmu_arithmetic_pkg",
     "(x[31] && !(is_float && ((x & 32'h7FFF_FFFF) > INFINITY)))",
     "(x[31] || (is_float && ((x & 32'h7FFF_FFFF) > INFINITY)))", "ReLU makes 0 of a NaN"},
    {"always_feedback", Tiles, kShown, "accumulate", "mmu_accumulators_banks",
     "accumulate_q[Columns+Lead-1:Lead]", "{Columns{1'b1}}",
     "a chain begins at what the bank read last, also without accumulate"},
    {"columns_beyond_the_tile", Tiles, kShown, "tiles", "mmu_accumulators_banks",
     "(ColumnBits'(c) < columns_q[(c+Fill+1)*ColumnBits+:ColumnBits])",
     "(columns_q[(c+Fill+1)*ColumnBits+:ColumnBits] != '0)",
     "columns beyond a tile's write their accumulators, too"},
    {"rows_below_the_tile", Tiles, kShown, "tiles", "mmu_weight_fifo_banks",
     "weight[ElementBits] && enabled_q", "weight[ElementBits]",
     "rows beyond a tile's multiply by what lies in the FIFO"},
    {"a_row_below_the_input", Addresses, kShown, "taps", "mmu_lane", "(y < {1'b0, in_height_i})",
     "(y <= {1'b0, in_height_i})", "the row below the input is read, not zero"},
    {"row_a_column_short", Addresses, kShown, "positions", "mmu_stream", "(columns_left_q > 16'd1)",
     "(columns_left_q > 16'd2)", "a stream turns to the next row a column early"},
    {"tokens_stay", Control, kShown, "order", "mmu_tokens", "8'(take)", "8'd0",
     "a token that was taken is still there"},
    {"hazard_a_cycle_early", Control, kShown, "order", "mmu_in_flight", "TimeBits'(Chain + 2)",
     "TimeBits'(Chain + 1)", "a chain goes on a cycle before the sum that it needs is written"},
    {"bias_is_the_multiplier", Tiles, kShown, "output", "mmu_output", "registers_file_i == 2'd0",
     "1'b1", "whatever file of registers is loaded, the biases are written, too"},
    {"queue_a_word_short", Control, kShown, "order", "mmu_queue", "count_q == CountBits'(Depth)",
     "count_q == CountBits'(Depth - 1)", "a queue is full with 15 instructions"},
    // Hidden.
    {"lost_bits_forgotten", Arithmetic, kHidden, "sums", "mmu_arithmetic_pkg",
     "((little & ~(32'hFFFF_FFFF << amount)) != 32'd0)", "1'b0",
     "bits that are shifted out do not count when a sum is rounded"},
    {"narrow_ties_down", Arithmetic, kHidden, "output", "mmu_arithmetic_pkg",
     "((x[15:0] == 16'h8000) && x[16])", "1'b0", "a tie on the way to bf16 goes down"},
    {"infinity_times_zero", Arithmetic, kHidden, "sums", "mmu_arithmetic_pkg",
     "((infinite != 32'd0) && (product == 32'd0))", "1'b0", "infinity times zero is infinity"},
    {"smallest_normal_flushed", Arithmetic, kHidden, "sums", "mmu_arithmetic_pkg",
     "(exponent + ((sum >= 32'hFFFF_FF80) ? 32'd1 : 32'd0) > EXPONENT_OFFSET)",
     "(exponent + ((sum >= 32'hFFFF_FF80) ? 32'd1 : 32'd0) > EXPONENT_OFFSET + 32'd1)",
     "the smallest normal numbers become zero"},
    {"product_a_bit_low", Arithmetic, kHidden, "output", "mmu_arithmetic_pkg", "32'(!product[47])",
     "32'd0", "a scale whose significands' product is below 2 gives twice as much"},
    {"a_column_right_of_the_input", Addresses, kHidden, "taps", "mmu_lane",
     "(x < {1'b0, in_width_i})", "(x <= {1'b0, in_width_i})",
     "the column right of the input is read, not zero"},
    {"rows_above_wrap", Addresses, kHidden, "taps", "mmu_lane", "{y_o[15], y_o}", "{1'b0, y_o}",
     "a position above the input is taken for one far below"},
    {"kernel_a_tap_too_wide", Addresses, kHidden, "taps", "mmu_lane",
     "before_kernel_x_i + 16'd1 < kernel_width_i", "before_kernel_x_i < kernel_width_i",
     "a kernel row has a tap too many"},
    {"next_image_is_a_row", Addresses, kHidden, "positions", "mmu_stream", "address_q + wrap_n_q",
     "address_q + wrap_y_q", "a stream goes to the next image as to the next row"},
    {"group_not_repeated", Addresses, kHidden, "taps", "mmu_fill", "r[LaneBits-1:0] & lane_mask",
     "r[LaneBits-1:0]", "a group smaller than the lanes fills the first of them alone"},
    {"tile_a_column_too_narrow", Tiles, kHidden, "tiles", "mmu_weight_fifo_banks",
     "16'(c) < write_columns_i", "16'(c) + 16'd1 < write_columns_i",
     "the last column of a tile is switched off"},
    {"tile_a_row_too_high", Tiles, kHidden, "tiles", "mmu_loader", "tile_rows_i - 16'd1",
     "tile_rows_i", "a tile has a row too many"},
    {"images_wrap_as_rows", Tiles, kHidden, "positions", "mmu_walk",
     "((rows_left_q > 16'd1) ? wrap_y_i : wrap_n_i)", "wrap_y_i",
     "a store goes to the next image as to the next row"},
    {"pool_forgets_nan", Tiles, kHidden, "output", "mmu_output",
     "!mmu_arithmetic_pkg::greater(value, pool_q[c], PeKind == 0)",
     "mmu_arithmetic_pkg::greater(pool_q[c], value, PeKind == 0)",
     "a pool that begins with NaN forgets it"},
    {"mask_beyond_the_columns", Tiles, kHidden, "output", "mmu_output", "(c < 32'(columns_i))",
     "1'b1", "a mask has bits of columns that are not stored"},
    {"all_registers_written", Tiles, kHidden, "output", "mmu_output", "16'(c) < columns_i", "1'b1",
     "registers beyond the columns that are loaded are written, too"},
    {"halt_does_not_wait", Control, kHidden, "order", "mmu_dispatch", "(!halt || idle_i)", "1'b1",
     "the program ends before the units have"},
    {"seven_in_flight", Control, kHidden, "order", "mmu_in_flight", "count_q == 4'(Entries)",
     "count_q == 4'd7", "an eighth matmul waits for room"},
    {"load_token_a_cycle_early", Control, kHidden, "order", "mmu_in_flight", "TimeBits'(Rows - 1)",
     "TimeBits'(Rows - 2)", "the load unit gets its token a cycle early"},
    {"taps_set_in_flight", Control, kHidden, "order", "mmu_compute",
     "(opcode == mmu_pkg::OP_SET_TAPS) && (missing_i == '0) && empty",
     "(opcode == mmu_pkg::OP_SET_TAPS) && (missing_i == '0)",
     "set_taps does not wait for matmuls in flight"},
};

/// Stands before the first module that Verilator reads.
constexpr std::string_view kSelection = R"(package lab_faults;
  function automatic int from_plusargs();
    int number;
    number = 0;
    if ($value$plusargs("fault=%d", number) == 0) number = 0;
    from_plusargs = number;
  endfunction
  int selected = from_plusargs();
endpackage

)";
constexpr std::string_view kFirstModule = "mmu_arithmetic_pkg";

}  // namespace

std::span<const SeededFault> seeded_faults() { return kFaults; }

std::vector<std::string> modules_with_faults() {
  std::vector<std::string> names;
  for (const auto& fault : kFaults)
    if (std::ranges::count(names, fault.module) == 0) names.emplace_back(fault.module);
  return names;
}

std::map<std::string, std::string> seed_faults(std::map<std::string, std::string> modules) {
  for (std::size_t number = 1; const auto& fault : kFaults) {
    auto& text = modules[std::string(fault.module)];
    const auto at = text.find(fault.right);
    if (at == text.npos || at != text.rfind(fault.right))
      throw InvalidArgument(fmt::format("seeded fault {}: '{}' should stand once in {}", fault.name,
                                        fault.right, fault.module));
    text.replace(at, fault.right.size(),
                 fmt::format("((lab_faults::selected == {}) ? ({}) : ({}))", number++, fault.wrong,
                             fault.right));
  }
  modules[std::string(kFirstModule)].insert(0, kSelection);
  return modules;
}

}  // namespace triptych::labs
