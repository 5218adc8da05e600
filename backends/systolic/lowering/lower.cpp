// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/lower.h"

#include <algorithm>

#include "core/base/checked_math.h"

namespace triptych::systolic {
namespace {

std::uint32_t u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }
std::int32_t i32(std::int64_t value) { return static_cast<std::int32_t>(u32(value)); }

class Lowering {
 public:
  Lowering(const StreamProblem& problem, const StreamAddresses& addresses, bool relu,
           const Tiling& tiling, const mmu::MachineConfig& machine, ProgramBuilder& builder)
      : p_(problem),
        addresses_(addresses),
        relu_(relu),
        tiling_(tiling),
        rows_(machine.rows),
        columns_(machine.columns),
        builder_(builder),
        boxes_(boxes_of(problem, tiling)),
        slices_(slices_of(problem, tiling.slicing)) {}

  // Positions stay, column tiles and values pass: the box's results are one group.
  void forward() {
    for (const auto& box : boxes_) {
      for (const auto& pass : column_passes()) {
        for (const auto& slice : slices_) {
          const BoxView view(slice, box);
          const bool resident = slices_.size() == 1;
          const bool first = &slice == &slices_.front();
          auto stage = begin_stage(view, !resident || pass.begin == 0);
          stage.frees = !resident || pass.end == column_tiles();
          for (std::int64_t k = 0; k < slice.values(); k += rows_) {
            add_forward_tiles(stage, view, slice, box, pass, k, !first || k > 0);
          }
          if (&slice == &slices_.back()) add_position_results(stage, box, pass);
          builder_.add(std::move(stage));
        }
      }
    }
  }

  // Some values and column tiles stay, all positions pass in order.
  void transposed() {
    for (const auto& slice : slices_) {
      for (std::int64_t v = 0; v < slice.values(); v += tiling_.pass_values) {
        const Range values = {v, std::min(v + tiling_.pass_values, slice.values())};
        for (const auto& pass : column_passes()) transposed_pass(slice, values, pass);
      }
    }
  }

 private:
  std::int64_t column_tiles() const { return ceil_div(p_.columns, columns_); }
  /// Column tiles that accumulate at a time.
  std::vector<Range> column_passes() const {
    std::vector<Range> passes;
    for (std::int64_t begin = 0; begin < column_tiles(); begin += tiling_.column_tiles) {
      passes.push_back({begin, std::min(begin + tiling_.column_tiles, column_tiles())});
    }
    return passes;
  }
  std::int64_t width(std::int64_t tile) const {
    return std::min(columns_, p_.columns - tile * columns_);
  }

  Stage begin_stage(const BoxView& view, bool fills) const {
    Stage stage = {.stream = view.stream(), .taps = view.taps(), .fills = fills};
    if (fills) stage.loads = view.loads(addresses_.stream);
    return stage;
  }

  mmu::WeightLoad weight_tile(std::int64_t tile, std::int64_t row, std::int64_t rows) const {
    const auto above = tile * columns_ * p_.stationary_rows() + row * width(tile);
    return {.address = u32(addresses_.stationary + above * p_.element_bytes),
            .pitch = u32(width(tile) * p_.element_bytes),
            .rows = u32(rows),
            .columns = u32(width(tile))};
  }

  void add_forward_tiles(Stage& stage, const BoxView& view, const Slice& slice, const Box& box,
                         Range pass, std::int64_t k, bool accumulate) const {
    mmu::Matmul matmul = {.accumulate = accumulate, .count = u32(box.positions())};
    view.start_at_position(0, matmul);
    view.start_at_value(k, matmul);
    const auto rows = std::min(rows_, slice.values() - k);
    for (auto tile = pass.begin; tile < pass.end; ++tile) {
      matmul.accumulator = u32((tile - pass.begin) * box.positions());
      stage.tiles.push_back({weight_tile(tile, slice.first_value + k, rows), matmul});
    }
  }

  void transposed_pass(const Slice& slice, Range values, Range pass) {
    const bool resident = boxes_.size() == 1;
    const bool first = values.begin == 0 && pass.begin == 0;
    const bool last = values.end == slice.values() && pass.end == column_tiles();
    std::int64_t done = 0;
    for (const auto& box : boxes_) {
      const BoxView view(slice, box);
      auto stage = begin_stage(view, !resident || first);
      stage.frees = !resident || last;
      for (std::int64_t position = 0; position < box.positions(); position += rows_) {
        add_transposed_tiles(stage, view, box, values, pass, position, done);
      }
      done += box.positions();
      if (&box == &boxes_.back()) add_value_results(stage, slice, values, pass);
      builder_.add(std::move(stage));
    }
  }

  void add_transposed_tiles(Stage& stage, const BoxView& view, const Box& box, Range values,
                            Range pass, std::int64_t position, std::int64_t done) const {
    mmu::Matmul matmul = {.accumulate = done + position > 0, .transpose = true};
    matmul.count = u32(values.size());
    view.start_at_position(position, matmul);
    view.start_at_value(values.begin, matmul);
    const auto rows = std::min(rows_, box.positions() - position);
    for (auto tile = pass.begin; tile < pass.end; ++tile) {
      matmul.accumulator = u32((tile - pass.begin) * values.size());
      stage.tiles.push_back({weight_tile(tile, done + position, rows), matmul});
    }
  }

  /// The results from `first_row` on of one column tile: `count` rows, in DRAM runs of `run` rows
  /// and gaps of `gap` between them.
  ResultStep result_step(std::int64_t tile, std::int64_t first_row, std::int64_t count,
                         std::int64_t run, std::int64_t gap) const {
    const auto row_bytes = width(tile) * 4;
    const auto above = tile * columns_ * p_.result_rows() * 4;
    ResultStep step;
    step.output = {.out_height = 1, .out_width = u32(run), .step_x = i32(row_bytes)};
    step.output.wrap_y = step.output.wrap_n = i32((gap + 1) * row_bytes);
    step.store.address = u32(addresses_.result + above + first_row * row_bytes);
    step.store.columns = u32(width(tile));
    step.store.count = u32(count);
    step.store.rows_left = 1;
    step.store.relu = relu_;
    if (addresses_.bias) {
      step.store.bias = true;
      step.bias = {.address = u32(*addresses_.bias + tile * columns_ * 4),
                   .columns = u32(width(tile))};
    }
    return step;
  }

  // Boxes of whole rows lie in DRAM without a gap, from image to image too.
  void add_position_results(Stage& stage, const Box& box, Range pass) const {
    const bool wraps = box.x.size() == p_.x.out || box.positions() > box.x.size();
    const auto run = wraps ? box.x.size() : 1;
    const auto gap = wraps ? p_.x.out - box.x.size() : 0;
    const auto first = (box.images.begin * p_.y.out + box.y.begin) * p_.x.out + box.x.begin;
    for (auto tile = pass.begin; tile < pass.end; ++tile) {
      auto step = result_step(tile, first, box.positions(), run, gap);
      step.store.accumulator = u32((tile - pass.begin) * box.positions());
      step.store.columns_left = u32(box.x.size());
      stage.results.push_back(step);
    }
  }

  void add_value_results(Stage& stage, const Slice& slice, Range values, Range pass) const {
    const auto channels = slice.channels.size();
    for (auto tile = pass.begin; tile < pass.end; ++tile) {
      auto step = result_step(tile, slice.whole_value(values.begin), values.size(), channels,
                              p_.channels - channels);
      step.store.accumulator = u32((tile - pass.begin) * values.size());
      step.store.columns_left = u32(channels - values.begin % channels);
      stage.results.push_back(step);
    }
  }

  const StreamProblem& p_;
  const StreamAddresses& addresses_;
  bool relu_;
  const Tiling& tiling_;
  std::int64_t rows_;
  std::int64_t columns_;
  ProgramBuilder& builder_;
  std::vector<Box> boxes_;
  std::vector<Slice> slices_;
};

}  // namespace

void lower(const StreamProblem& problem, const StreamAddresses& addresses, bool relu,
           const Tiling& tiling, const mmu::MachineConfig& machine, ProgramBuilder& builder) {
  Lowering lowering(problem, addresses, relu, tiling, machine, builder);
  if (problem.transpose) {
    lowering.transposed();
  } else {
    lowering.forward();
  }
}

}  // namespace triptych::systolic
