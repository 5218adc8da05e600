// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/lower.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "backends/systolic/lowering/stream_problem.h"
#include "core/base/checked_math.h"

namespace triptych::systolic {
namespace {

// The content of the buffer as tiles demand it: a load is written when a tile reads data that no
// tile has read before, unless the program before has left them there.

class Content {
 public:
  /// Values of the slice that the box reads, of the image tensor at `address`. `is_there`: all of
  /// them lie in the buffer already.
  Content(const Slice& slice, const Box& box, std::uint32_t address, bool is_there)
      : view_(slice, box),
        address_(address),
        loaded_(static_cast<std::size_t>(view_.units()), is_there ? view_.inputs() : 0) {}

  const BoxView& view() const { return view_; }
  /// True when something is missing of the first `inputs` inputs, of these units.
  bool lacks(std::int64_t inputs, Range units) const {
    return std::any_of(loaded_.begin() + units.begin, loaded_.begin() + units.end,
                       [&](auto there) { return there < inputs; });
  }

  /// The loads of the missing parts of the first `inputs` inputs, `units` of each.
  std::vector<mmu::Load> read(std::int64_t inputs, Range units) {
    std::vector<mmu::Load> loads;
    for (auto begin = units.begin, end = begin; begin < units.end; begin = end) {
      const auto there = loaded_[static_cast<std::size_t>(begin)];
      while (end < units.end && loaded_[static_cast<std::size_t>(end)] == there) ++end;
      if (there >= inputs) continue;
      std::ranges::copy(view_.loads(address_, {there, inputs}, {begin, end}),
                        std::back_inserter(loads));
      std::fill(loaded_.begin() + begin, loaded_.begin() + end, inputs);
    }
    return loads;
  }

 private:
  BoxView view_;
  std::uint32_t address_;
  std::vector<std::int64_t> loaded_;  ///< inputs, by unit
};

// At both ends of a problem matmuls are cut into parts: the first ones start when the first part of
// their data is there, and the results of the last ones leave part by part. In between, whole
// loads and stores are hidden anyway.
constexpr std::int64_t kMostLoads = 12;       // the load unit's queue also holds the next stages'
constexpr std::int64_t kMostLoadsAlone = 64;  // of a program's only stage: no other's wait for them
constexpr std::int64_t kMostStores = 16;
constexpr std::int64_t kFewestResults = 32;

std::vector<Range> cut(Range all, std::int64_t step) {
  std::vector<Range> parts;
  for (auto begin = all.begin; begin < all.end; begin += step) {
    parts.push_back({begin, std::min(begin + step, all.end)});
  }
  return parts;
}

/// Work of a stage: `pass` of the column tiles over values and positions of the box. A forward
/// stream cuts the values into tiles, a transposed one the positions.
struct Place {
  const Slice* slice;
  const Box* box;
  Range values, positions;
  Range pass;

  bool has_content_of(const Place& other) const { return slice == other.slice && box == other.box; }
};

struct Draft {
  const Place& at;
  Content& content;
  std::int64_t rows;  ///< of the array
  bool first, last;   ///< of the problem's stages
  std::int64_t most_loads;
  Stage stage{.stream = content.view().stream(), .taps = content.view().taps()};

  /// The first tiles wait for these many blocks of units ...
  std::int64_t blocks() const {
    if (!first || !content.view().has_even_inputs()) return 1;
    return std::min(most_loads, ceil_div(at.slice->channels.size(), rows));
  }
  /// ... and for the inputs of so many positions at a time.
  std::int64_t positions_at_a_time() const {
    if (!first) return at.positions.size();
    const auto loads = at.slice->problem.transpose ? most_loads - blocks() : most_loads / blocks();
    return round_up(ceil_div(at.positions.size(), std::max<std::int64_t>(1, loads)), rows);
  }
  /// The units that hold these values of the slice, in whole blocks.
  Range units_of(Range values) const {
    const Range all = {0, content.view().units()};
    const auto channels = at.slice->channels.size();
    const auto tap = values.begin / channels * channels;
    if (blocks() == 1 || values.end > tap + channels) return all;
    const auto block = ceil_div(all.end, blocks());
    const auto group = at.slice->problem.group;
    return {(values.begin - tap) / group / block * block,
            std::min(all.end, round_up(ceil_div(values.end - tap, group), block))};
  }
  /// Inputs that are loaded before the positions up to this one are streamed.
  std::int64_t inputs_for(std::int64_t end) const {
    const auto some = round_up(end - at.positions.begin, positions_at_a_time());
    return content.view().inputs_for(std::min(at.positions.begin + some, at.positions.end));
  }
};

/// Results on their way to DRAM: rows from `first` on, in runs of `run` with gaps of `gap` between
/// them. `left` to the end of the first run.
struct ResultRows {
  std::int64_t first = 0, run = 1, gap = 0, left = 1;
};

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
        slices_(slices_of(problem, tiling.slicing)),
        passes_(cut({0, column_tiles()}, tiling.column_tiles)) {}

  void run() {
    const auto places = p_.transpose ? transposed_places() : forward_places();
    std::optional<Content> content;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto& at = places[i];
      const bool first = i == 0, last = i + 1 == places.size();
      const bool fills = first || !at.has_content_of(places[i - 1]);
      if (fills) content.emplace(*at.slice, *at.box, addresses_.stream, is_there());
      const bool alone = builder_.is_empty() && places.size() == 1;
      const auto most_loads = alone ? kMostLoadsAlone : kMostLoads;
      Draft draft = {at, *content, rows_, first, last, most_loads};
      draft.stage.fills = fills;
      draft.stage.alone = alone;
      draft.stage.frees = last || !at.has_content_of(places[i + 1]);
      add_tiles(draft);
      builder_.add(std::move(draft.stage));
    }
  }

 private:
  void add_tiles(Draft& draft) {
    const auto& at = draft.at;
    if (tiling_.dataflow == Dataflow::OutputStationary) {
      for (auto tile = at.pass.begin; tile < at.pass.end; ++tile) stationary_tile(draft, tile);
      return;
    }
    for (const auto& part : cut(p_.transpose ? at.positions : at.values, rows_)) {
      for (auto tile = at.pass.begin; tile < at.pass.end; ++tile) {
        p_.transpose ? transposed_tile(draft, part, tile) : forward_tile(draft, part, tile);
      }
    }
  }

  // Some positions stay, column tiles and values pass: their results are one group.
  std::vector<Place> forward_places() const {
    std::vector<Place> places;
    for (const auto& box : boxes_) {
      for (const auto& positions : cut({0, box.positions()}, tiling_.pass)) {
        for (const auto& pass : passes_) {
          for (const auto& slice : slices_) {
            places.push_back({&slice, &box, {0, slice.values()}, positions, pass});
          }
        }
      }
    }
    return places;
  }

  // Some values and column tiles stay, all positions pass in order.
  std::vector<Place> transposed_places() const {
    std::vector<Place> places;
    for (const auto& slice : slices_) {
      for (const auto& values : cut({0, slice.values()}, tiling_.pass)) {
        for (const auto& pass : passes_) {
          for (const auto& box : boxes_) {
            for (const auto& positions : cut({0, box.positions()}, kTransposedTiles * rows_)) {
              places.push_back({&slice, &box, values, positions, pass});
            }
          }
        }
      }
    }
    return places;
  }

  bool is_there() const { return addresses_.stream_row.has_value(); }
  std::int64_t column_tiles() const { return ceil_div(p_.columns, columns_); }
  std::int64_t width(std::int64_t tile) const {
    return std::min(columns_, p_.columns - tile * columns_);
  }
  /// The position of the problem that is the box's first.
  std::int64_t corner(const Box& box) const {
    return (box.images.begin * p_.y.out + box.y.begin) * p_.x.out + box.x.begin;
  }
  /// How many results leave at a time at the end: enough for the table of matmuls in flight.
  std::int64_t leaving(std::int64_t results) const {
    return std::max({kFewestResults, rows_ / 2, ceil_div(results, kMostStores)});
  }

  /// The matmul of some rows of one column tile. `keep`: a later part of it.
  TileStep tile_step(std::int64_t tile, Range rows, bool keep) const {
    TileStep step = {.matmul = {.accumulate = rows.begin > 0, .keep = keep}};
    if (keep) return step;
    const auto above = tile * columns_ * p_.stationary_rows() + rows.begin * width(tile);
    step.weights = {.address = u32(addresses_.stationary + above * p_.element_bytes),
                    .pitch = u32(width(tile) * p_.element_bytes),
                    .rows = u32(rows.size()),
                    .columns = u32(width(tile))};
    return step;
  }

  /// All positions through one tile of values.
  void forward_tile(Draft& draft, Range values, std::int64_t tile) {
    const auto& at = draft.at;
    const auto& view = draft.content.view();
    const auto units = draft.units_of(values);
    const Range rows = {at.slice->first_value + values.begin, at.slice->first_value + values.end};
    const bool completes = rows.end == p_.values();
    const auto loads = view.inputs_for(at.positions.end);
    for (auto begin = at.positions.begin, end = begin; begin < at.positions.end; begin = end) {
      end = at.positions.end;
      if (draft.content.lacks(loads, units)) end = begin + draft.positions_at_a_time();
      if (draft.last && completes) end = std::min(end, begin + leaving(at.positions.size()));
      end = std::min(end, at.positions.end);
      auto step = tile_step(tile, rows, begin > at.positions.begin);
      view.start_at_position(begin, step.matmul);
      view.start_at_value(values.begin, step.matmul);
      step.matmul.address += i32(addresses_.stream_row.value_or(0));
      step.matmul.count = u32(end - begin);
      step.matmul.accumulator = accumulator_of(draft, tile, begin);
      step.loads = draft.content.read(draft.inputs_for(end), units);
      if (completes) step.result = positions_result(draft, tile, step.matmul, begin);
      draft.stage.completes |= completes;
      draft.stage.tiles.push_back(std::move(step));
    }
  }

  /// All values past blocks of positions whose sums stay in the array.
  void stationary_tile(Draft& draft, std::int64_t tile) {
    const auto& at = draft.at;
    const auto most = draft.last ? leaving(at.positions.size()) : at.positions.size();
    auto stored = at.positions.begin;
    for (const auto& block : cut(at.positions, rows_)) {
      for (const auto& values : cut(at.values, rows_)) add_link(draft, tile, block, values);
      if (block.end < at.positions.end && block.end - stored < most) continue;
      mmu::Matmul results = draft.stage.tiles.back().matmul;
      results.count = u32(block.end - stored);
      results.accumulator = accumulator_of(draft, tile, stored);
      draft.stage.tiles.back().result = positions_result(draft, tile, results, stored);
      stored = block.end;
    }
    draft.stage.completes = true;
  }

  /// One tile of values of a chain for a block of positions.
  void add_link(Draft& draft, std::int64_t tile, Range block, Range values) {
    const auto& view = draft.content.view();
    auto step = tile_step(tile, values, false);
    step.weights->stream = true;
    view.start_at_position(block.begin, step.matmul);
    view.start_at_value(values.begin, step.matmul);
    step.matmul.address += i32(addresses_.stream_row.value_or(0));
    step.matmul.output_stationary = step.matmul.transpose = true;
    step.matmul.drain = values.end == draft.at.values.end;
    step.matmul.count = u32(block.size());
    step.matmul.accumulator = accumulator_of(draft, tile, block.begin);
    step.loads = draft.content.read(draft.inputs_for(block.end), draft.units_of(values));
    draft.stage.tiles.push_back(std::move(step));
  }

  static std::uint32_t accumulator_of(const Draft& draft, std::int64_t tile,
                                      std::int64_t position) {
    const auto& at = draft.at;
    return u32((tile - at.pass.begin) * at.positions.size() + position - at.positions.begin);
  }

  /// All values through one tile of positions.
  void transposed_tile(Draft& draft, Range positions, std::int64_t tile) {
    const auto& values = draft.at.values;
    const auto first = corner(*draft.at.box);
    const Range rows = {first + positions.begin, first + positions.end};
    const auto inputs = draft.inputs_for(positions.end);
    const bool completes = rows.end == p_.positions();
    for (auto begin = values.begin, end = begin; begin < values.end; begin = end) {
      const auto next = std::min(begin + rows_, values.end);
      end = draft.content.lacks(inputs, draft.units_of({begin, next})) ? next : values.end;
      if (draft.last && completes) {
        end = std::min(end, begin + round_up(leaving(values.size()), rows_));
      }
      if (values.end - end < rows_) end = values.end;  // as a part of its own it could not abut
      auto step = tile_step(tile, rows, begin > values.begin);
      draft.content.view().start_at_position(positions.begin, step.matmul);
      draft.content.view().start_at_value(begin, step.matmul);
      step.matmul.transpose = true;
      step.matmul.abut = end - begin >= rows_;
      step.matmul.count = u32(end - begin);
      step.matmul.accumulator =
          u32((tile - draft.at.pass.begin) * values.size() + begin - values.begin);
      step.loads = draft.content.read(inputs, draft.units_of({begin, end}));
      if (completes) step.result = values_result(draft, tile, step.matmul, begin);
      draft.stage.completes |= completes;
      draft.stage.tiles.push_back(std::move(step));
    }
  }

  ResultStep result_step(std::int64_t tile, const mmu::Matmul& matmul,
                         const ResultRows& rows) const {
    const auto& registers = addresses_.registers;
    const auto& kept = addresses_.kept;
    const auto step_x = kept ? kept->units : width(tile) * p_.result_bytes;
    const auto tile_begins =
        kept ? kept->row + tile
             : addresses_.result + tile * columns_ * p_.result_rows() * p_.result_bytes;
    ResultStep step;
    step.output = {.out_height = 1, .out_width = u32(rows.run), .step_x = i32(step_x)};
    step.output.wrap_y = step.output.wrap_n = i32((rows.gap + 1) * step_x);
    step.store = {.bias = registers.files > 0,
                  .relu = relu_,
                  .narrow = (p_.result_bytes < 4),
                  .scale = (registers.files > 1),
                  .buffer = kept.has_value(),
                  .address = u32(tile_begins + rows.first * step_x),
                  .count = matmul.count,
                  .accumulator = matmul.accumulator,
                  .rows_left = 1,
                  .columns_left = u32(rows.left),
                  .columns = u32(width(tile)),
                  .log2_group = kept ? log2_group(kept->group) : 0};
    if (registers.files > 0) {
      step.registers = {.more = u32(registers.files - 1),
                        .address = u32(registers.address + tile * columns_ * 4),
                        .columns = u32(width(tile)),
                        .pitch = u32(registers.pitch)};
    }
    return step;
  }

  // Boxes of whole rows lie in DRAM without a gap, from image to image too.
  ResultStep positions_result(const Draft& draft, std::int64_t tile, const mmu::Matmul& matmul,
                              std::int64_t begin) const {
    const auto& box = *draft.at.box;
    const auto wide = box.x.size();
    const bool wraps = wide == p_.x.out || box.positions() > wide;
    return result_step(tile, matmul,
                       {.first = corner(box) + begin / wide * p_.x.out + begin % wide,
                        .run = wraps ? wide : 1,
                        .gap = wraps ? p_.x.out - wide : 0,
                        .left = wide - begin % wide});
  }

  ResultStep values_result(const Draft& draft, std::int64_t tile, const mmu::Matmul& matmul,
                           std::int64_t begin) const {
    const auto channels = draft.at.slice->channels.size();
    return result_step(tile, matmul,
                       {.first = draft.at.slice->whole_value(begin),
                        .run = channels,
                        .gap = p_.channels - channels,
                        .left = channels - begin % channels});
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
  std::vector<Range> passes_;
};

}  // namespace

void lower(const StreamProblem& problem, const StreamAddresses& addresses, bool relu,
           const Tiling& tiling, const mmu::MachineConfig& machine, ProgramBuilder& builder) {
  Lowering(problem, addresses, relu, tiling, machine, builder).run();
}

}  // namespace triptych::systolic
