// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/tiling.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace triptych::systolic {
namespace {

constexpr std::size_t kKept = 3;
constexpr std::int64_t kMaxField = 65535;  // channels of SetTaps, or rows and columns of SetStream

/// Sizes of about equal parts of n: all of n, halves, thirds, ... less densely where there are
/// many.
std::vector<std::int64_t> part_sizes(std::int64_t n) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t parts = 1; parts <= n; parts += 1 + parts / 16) {
    const auto size = ceil_div(n, parts);
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
  }
  if (sizes.back() != 1) sizes.push_back(1);
  return sizes;
}

/// The sizes to try of a problem's n: the requested one, or parts.
std::vector<std::int64_t> sizes_of(std::int64_t n, const std::optional<std::int64_t>& given) {
  if (given) return {std::min(*given, n)};
  return part_sizes(n);
}

std::int64_t extent(const StreamAxis& axis, std::int64_t outputs, bool one_tap) {
  const auto taps = one_tap ? 0 : (axis.taps - 1) * std::abs(axis.step);
  return std::min(axis.in, (outputs - 1) * axis.stride + taps + 1);
}

/// Cycles and requests of a whole problem, for either direction.
struct Work {
  double tiles = 0;       ///< weight tiles moved
  double slots = 0;       ///< of one matmul
  double revisit = 1;     ///< tiles from one use of an accumulator row to the next
  double load_rows = 0;   ///< buffer rows
  double tile_rows = 0;   ///< rows of weight tiles
  double drains = 0;      ///< changes of a descriptor
  double stages = 0;      ///< computation while the next stage's data arrive
  double loads = 0;       ///< stages with loads
  double stores = 0;      ///< loads that begin together with the store of a group's results
  double group_rows = 0;  ///< results in one column tile of a group, times its column tiles
  double idle = 1;        ///< cycles between the slots of two matmuls where no chain waits
};

double cost_of(const Tiling& tiling) { return tiling.cycles + tiling.ramp; }

/// The fastest tilings, and nearly as fast ones unless another one is faster with less traffic.
class Shortlist {
 public:
  void add(const Tiling& t) {
    if (std::ranges::find(fastest_, t) == fastest_.end()) {
      fastest_.insert(std::ranges::upper_bound(fastest_, cost_of(t), {}, cost_of), t);
      if (fastest_.size() > kKept) fastest_.pop_back();
    }
    const auto covers_it = [&](const Tiling& other) { return covers(other, t); };
    if (!is_near(t) || std::ranges::any_of(frontier_, covers_it)) return;
    std::erase_if(frontier_, [&](const Tiling& other) { return covers(t, other); });
    frontier_.push_back(t);
  }

  const std::vector<Tiling>& fastest() const { return fastest_; }
  TilingCandidates take() {
    std::erase_if(frontier_, [&](const Tiling& t) { return !is_near(t); });
    std::ranges::sort(frontier_, {}, &Tiling::traffic);
    if (frontier_.size() > kKept) frontier_.resize(kKept);
    return {std::move(fastest_), std::move(frontier_)};
  }

 private:
  bool is_near(const Tiling& t) const {
    return cost_of(t) <= kEstimateSlack * cost_of(fastest_.front());
  }
  /// True when `a` is neither slower than `b` nor moves more.
  static bool covers(const Tiling& a, const Tiling& b) {
    return cost_of(a) <= cost_of(b) && a.traffic <= b.traffic;
  }

  std::vector<Tiling> fastest_, frontier_;
};

class Estimator {
 public:
  Estimator(const StreamProblem& problem, const mmu::MachineConfig& machine, const Parts& parts,
            const TilingChoice& choice, Dataflow dataflow)
      : p_(problem),
        choice_(choice),
        dataflow_(dataflow),
        rows_(machine.rows),
        chain_(machine.chain_cycles()),
        columns_(machine.columns),
        buffer_(machine.buffer_rows / parts.buffer),
        accumulators_(machine.accumulator_rows / parts.accumulators),
        parts_(parts),
        bytes_per_cycle_(machine.dram.bytes_per_cycle),
        latency_(machine.dram.latency),
        column_tiles_(ceil_div(problem.columns, columns_)) {}

  void consider(Tiling tiling) {
    if (!has_given_sizes(tiling)) return;
    const auto channels = slice_channels(tiling);
    if (std::max({channels, tiling.box_y, tiling.box_x}) > kMaxField) return;
    const bool one_tap = tiling.slicing.one_tap;
    const auto rows = tiling.box_images * extent(p_.y, tiling.box_y, one_tap) *
                      extent(p_.x, tiling.box_x, one_tap) * (channels / p_.group);
    if (rows > buffer_) return refuse([&] { return box_problem(tiling, rows); });
    tiling.dataflow = dataflow_;
    if (dataflow_ == Dataflow::OutputStationary && (p_.transpose || slices(tiling) > 1))
      return refuse([&] { return chain_problem(tiling); });
    for (const auto tiles : sizes_of(column_tiles_, choice_.columns)) {
      tiling.column_tiles = tiles;
      consider_pass(tiling, rows);
    }
  }

  /// The first reason against a tiling. Empty: none has all the requested sizes.
  const std::string& refusal() const { return refusal_; }

  const std::vector<Tiling>& fastest() const { return shortlist_.fastest(); }
  TilingCandidates take() { return shortlist_.take(); }

 private:
  /// The largest pass of the tiling's column tiles.
  void consider_pass(Tiling tiling, std::int64_t rows) {
    const auto streamed = p_.transpose ? slice_values(tiling) : box_positions(tiling);
    const bool stays = tiling.dataflow == Dataflow::OutputStationary;
    tiling.pass = pass_of(streamed, accumulators_ / tiling.column_tiles, stays || p_.transpose);
    // Slices that share the buffer have to be read by all positions at once.
    const bool once = p_.transpose || slices(tiling) == 1 || tiling.pass == streamed;
    if (tiling.pass == 0 || !once) {
      if (tiling.column_tiles == 1 || choice_.columns)
        refuse([&] { return pass_problem(tiling, streamed); });
      return;
    }
    rate(tiling, stays          ? output_stationary(tiling, rows)
                 : p_.transpose ? transposed(tiling, rows)
                                : forward(tiling, rows));
  }

  /// Keeps the first reason, where somebody is to read it.
  void refuse(const auto& why) {
    if (refusal_.empty() && !choice_.text.empty()) refusal_ = why();
  }
  std::string box_problem(const Tiling& t, std::int64_t rows) const {
    return fmt::format(
        "a box of {} x {} x {} positions of {} channels takes {} rows of the buffer, a part has {}",
        t.box_images, t.box_y, t.box_x, slice_channels(t), rows, buffer_);
  }
  std::string chain_problem(const Tiling& t) const {
    if (p_.transpose)
      return "the sums of a weight gradient run over all positions, so that they cannot stay in "
             "the "
             "array";
    return fmt::format("sums stay in the array while all {} channels pass, a slice has {}",
                       p_.channels, slice_channels(t));
  }
  std::string pass_problem(const Tiling& t, std::int64_t streamed) const {
    if (t.pass > 0) {
      return fmt::format("slices of {} channels need all {} positions of a box in one pass, not {}",
                         slice_channels(t), streamed, t.pass);
    }
    return fmt::format(
        "{} of {} {} in {} column tiles do not fit {} accumulators, which a part has",
        std::min(choice_.pass.value_or(1), streamed), streamed,
        p_.transpose ? "values" : "positions", t.column_tiles, accumulators_);
  }
  bool has_given_sizes(const Tiling& t) const {
    const auto is = [](std::int64_t size, const std::optional<std::int64_t>& given,
                       std::int64_t all) { return !given || size == std::min(*given, all); };
    const bool cuts_rows = t.box_x < p_.x.out;
    const bool whole = t.box_y == p_.y.out && !cuts_rows;
    return is(t.box_images, choice_.images, p_.images) && is(t.box_y, choice_.y, p_.y.out) &&
           is(t.box_x, choice_.x, p_.x.out) && (t.box_images == 1 || whole) &&
           !(p_.transpose && cuts_rows && t.box_y > 1) &&
           (!choice_.taps || taps() == 1 || t.slicing.one_tap == (*choice_.taps == 1));
  }

  static double at(std::int64_t value) { return static_cast<double>(value); }

  std::int64_t taps() const { return p_.y.taps * p_.x.taps; }
  std::int64_t slice_channels(const Tiling& t) const {
    return t.slicing.channels > 0 ? t.slicing.channels : p_.channels;
  }
  std::int64_t slices(const Tiling& t) const {
    return (t.slicing.one_tap ? taps() : 1) * ceil_div(p_.channels, slice_channels(t));
  }
  std::int64_t slice_values(const Tiling& t) const {
    return (t.slicing.one_tap ? 1 : taps()) * slice_channels(t);
  }
  std::int64_t boxes(const Tiling& t) const {
    return ceil_div(p_.images, t.box_images) * ceil_div(p_.y.out, t.box_y) *
           ceil_div(p_.x.out, t.box_x);
  }
  static std::int64_t box_positions(const Tiling& t) { return t.box_images * t.box_y * t.box_x; }
  /// The largest even part of the streamed operand with results that fit, in blocks of the array's
  /// rows if `blocks`. 0: none does.
  std::int64_t pass_of(std::int64_t streamed, std::int64_t room, bool blocks) const {
    if (choice_.pass) {
      const auto given = std::min(*choice_.pass, streamed);
      const auto pass = blocks ? std::min(round_up(given, rows_), streamed) : given;
      return pass <= room ? pass : 0;
    }
    if (streamed <= room) return streamed;
    const auto unit = !blocks ? 1 : room >= rows_ ? rows_ : p_.transpose ? p_.group : 1;
    if (room < unit) return 0;
    return round_up(ceil_div(streamed, ceil_div(streamed, room / unit * unit)), unit);
  }

  /// Times that the array drains because the next box has another descriptor.
  std::int64_t descriptor_changes(const Tiling& t) const {
    if (t.box_x == p_.x.out || p_.y.out * p_.images == 1) return 1;
    return t.box_y > 1 ? boxes(t) : 3 * p_.y.out * p_.images;
  }

  /// True when one stage can hold the whole problem.
  bool fits_at_once() const {
    return p_.images * p_.y.in * p_.x.in * (p_.channels / p_.group) <= buffer_ &&
           p_.result_rows() <= accumulators_;
  }

  Work forward(const Tiling& t, std::int64_t rows) const {
    const auto parts = slices(t);
    const auto groups = boxes(t) * ceil_div(box_positions(t), t.pass);
    const auto passes = ceil_div(column_tiles_, t.column_tiles);
    const auto contents = parts > 1 ? groups * passes * parts : boxes(t);
    return {.tiles = at(groups * parts * ceil_div(slice_values(t), rows_) * column_tiles_),
            .slots = at(t.pass),
            .revisit = at(t.column_tiles),
            .load_rows = at(contents * rows),
            .tile_rows = at(groups * p_.values() * column_tiles_),
            .drains = at(parts > 1 ? contents : descriptor_changes(t)),
            .stages = at(groups * passes * parts),
            .loads = at(parts > 1 ? contents : groups),
            .stores = at(groups),
            .group_rows = at(t.pass * t.column_tiles)};
  }

  /// Chains of up to R results, each with the tiles of all values.
  Work output_stationary(const Tiling& t, std::int64_t rows) const {
    auto work = forward(t, rows);
    const auto chains = boxes(t) * ceil_div(box_positions(t), t.pass) * ceil_div(t.pass, rows_);
    work.tiles = at(chains * ceil_div(p_.values(), rows_) * column_tiles_);
    work.slots = at(rows_);
    work.revisit = at(chain_ + 3);
    work.tile_rows = at(chains * p_.values() * column_tiles_);
    work.idle = 0;
    return work;
  }

  Work transposed(const Tiling& t, std::int64_t rows) const {
    const auto parts = slices(t);
    const auto count = boxes(t);
    const auto tiles = count * ceil_div(box_positions(t), rows_);
    const auto stages = count * ceil_div(box_positions(t), kTransposedTiles * rows_);
    const auto value_passes = parts * ceil_div(slice_values(t), t.pass);
    const auto passes = value_passes * ceil_div(column_tiles_, t.column_tiles);
    return {.tiles = at(tiles * value_passes * column_tiles_),
            .slots = at(t.pass),
            .revisit = at(t.column_tiles),
            .load_rows = at(rows * (count == 1 ? parts : count * passes)),
            .tile_rows = at(p_.positions() * value_passes * column_tiles_),
            .drains = at(parts * descriptor_changes(t)),
            .stages = at(stages * passes),
            .loads = at(stages * (count == 1 ? parts : passes)),
            .stores = at(count == 1 ? parts : passes),
            .group_rows = at(t.pass * t.column_tiles)};
  }

  void rate(Tiling& t, const Work& work) {
    const auto bytes_time = [&](double bytes) {
      return bytes_per_cycle_ > 0 ? bytes / bytes_per_cycle_ : 0;
    };
    const auto row_bytes = at(p_.group * p_.element_bytes);
    const auto columns = at(p_.columns) / at(column_tiles_);
    const auto tile_row_bytes = columns * at(p_.element_bytes);
    const auto result_bytes = columns * at(p_.result_bytes);
    const auto per_tile =
        std::max({work.slots, at(rows_) + work.idle, at(chain_ + 3) / work.revisit,
                  bytes_time(work.tile_rows / work.tiles * tile_row_bytes)});
    const auto stores = at(p_.result_rows() * column_tiles_);
    const auto compute = work.tiles * per_tile + work.drains * at(chain_ + columns_ + 6);
    t.traffic =
        work.load_rows * row_bytes + work.tile_rows * tile_row_bytes + stores * result_bytes;
    // One stage: rows, and the time of its bytes.
    const auto load_rows = work.load_rows / work.loads;
    const auto load_time = bytes_time(load_rows * row_bytes);
    const auto store_time = bytes_time(work.group_rows * result_bytes);
    const auto tiles_time = bytes_time(work.tile_rows / work.stages * tile_row_bytes);
    const auto load = std::max(load_rows, load_time + tiles_time);
    const auto both = std::max({load_rows, work.group_rows, load_time + store_time + tiles_time});
    // A stage loads while those before compute. A store that begins then too goes first.
    const auto hidden = compute / work.stages;
    // After the last load a stage remains, where a single one could have begun with its first.
    const auto loaded = work.load_rows + (fits_at_once() && work.loads > 1 ? hidden : 0);
    const auto ports = std::max({loaded, work.tile_rows, stores});
    const auto ahead = at(parts_.buffer - 2) * hidden;
    const auto late = [&](double cycles) {
      return std::max({0.0, cycles - hidden, cycles + at(rows_) + latency_ - hidden - ahead});
    };
    const auto stalls =
        std::max(0.0, work.loads - work.stores) * late(load) + work.stores * late(both);
    t.cycles =
        std::max({work.loads > 1 ? compute + stalls : compute, ports, bytes_time(t.traffic)});
    t.ramp = (load + std::max(work.group_rows, store_time)) / 8 + latency_;
    shortlist_.add(t);
  }

  const StreamProblem& p_;
  const TilingChoice& choice_;
  Dataflow dataflow_;
  std::string refusal_;
  std::int64_t rows_, chain_, columns_, buffer_, accumulators_;
  Parts parts_;
  double bytes_per_cycle_;
  double latency_;
  std::int64_t column_tiles_;
  Shortlist shortlist_;
};

/// Rows to try of boxes that are not as wide as the image.
std::vector<std::int64_t> narrow_rows(const StreamProblem& p, const TilingChoice& choice) {
  if (choice.y) return sizes_of(p.y.out, choice.y);
  const auto most = p.transpose ? 1 : std::min<std::int64_t>(16, p.y.out);
  std::vector<std::int64_t> rows;
  for (std::int64_t y = 1; y <= most; y *= 2) rows.push_back(y);
  return rows;
}

void consider_boxes(const StreamProblem& p, const Slicing& slicing, const TilingChoice& choice,
                    Estimator& estimator) {
  Tiling tiling = {.box_y = p.y.out, .box_x = p.x.out, .slicing = slicing};
  for (const auto images : sizes_of(p.images, choice.images)) {
    tiling.box_images = images;
    estimator.consider(tiling);
  }
  tiling.box_images = 1;
  for (const auto y : sizes_of(p.y.out, choice.y)) {
    tiling.box_y = y;
    estimator.consider(tiling);
  }
  for (const auto y : narrow_rows(p, choice)) {
    tiling.box_y = y;
    for (const auto x : sizes_of(p.x.out, choice.x)) {
      tiling.box_x = x;
      estimator.consider(tiling);
    }
  }
}

void consider_slices(const StreamProblem& p, bool one_tap, const mmu::MachineConfig& machine,
                     const TilingChoice& choice, Estimator& estimator) {
  const auto unit = std::min<std::int64_t>(p.channels, machine.rows);
  for (const auto units : part_sizes(ceil_div(p.channels, unit))) {
    const auto channels = units * unit < p.channels ? units * unit : 0;
    consider_boxes(p, {one_tap, channels}, choice, estimator);
  }
}

void consider_all(const StreamProblem& p, const mmu::MachineConfig& machine,
                  const TilingChoice& choice, Estimator& estimator) {
  if (choice.channels) {
    const auto channels = *choice.channels < p.channels ? *choice.channels : 0;
    if (channels % p.group > 0) return;
    if (p.transpose || channels == 0) consider_boxes(p, {false, channels}, choice, estimator);
    consider_boxes(p, {true, channels}, choice, estimator);
    return;
  }
  consider_boxes(p, {}, choice, estimator);
  if (p.transpose) consider_slices(p, false, machine, choice, estimator);
  const auto& best = estimator.fastest();
  const auto enough = std::min<std::int64_t>(p.positions(), machine.rows);
  const bool starved = best.empty() || best[0].box_images * best[0].box_y * best[0].box_x < enough;
  if (starved || choice.taps == 1) consider_slices(p, true, machine, choice, estimator);
}

[[noreturn]] void refuse(const TilingChoice& choice, const mmu::MachineConfig& machine,
                         const std::string& why) {
  if (choice.text.empty()) {
    throw UnsupportedError("the machine " + machine.name +
                           " is too small for this product; choose another machine");
  }
  throw UnsupportedError(fmt::format(
      "the tiling \"{}\" does not fit {}: {}; make it smaller, or leave sizes to the planner",
      choice.text, machine.name,
      !why.empty()
          ? why
          : "boxes of several images hold them whole, transposed streams cut rows only one "
            "at a time, and slices are multiples of a buffer row's channels"));
}

/// Dataflows to try.
std::vector<Dataflow> dataflows_of(const mmu::MachineConfig& machine, const TilingChoice& choice) {
  constexpr auto weights = Dataflow::WeightStationary, outputs = Dataflow::OutputStationary;
  if (choice.dataflow == outputs && !machine.has_output_stationary()) {
    throw UnsupportedError(fmt::format(
        "the tiling \"{}\" does not fit {}: its array has the weight-stationary dataflow only; "
        "choose a machine whose file says \"dataflows\": \"both\"",
        choice.text, machine.name));
  }
  if (choice.dataflow) return {*choice.dataflow};
  switch (machine.dataflows) {
    case mmu::Dataflows::OutputStationary:
      return {outputs, weights};  // the second one where the first does not fit
    case mmu::Dataflows::Both:
      return {weights, outputs};
    case mmu::Dataflows::WeightStationary:
      break;
  }
  return {weights};
}

}  // namespace

TilingCandidates choose_tilings(const StreamProblem& problem, const mmu::MachineConfig& machine,
                                const Parts& parts, const TilingChoice& choice) {
  std::string refusal;
  TilingCandidates all;
  const auto add = [](std::vector<Tiling>& to, const std::vector<Tiling>& tilings) {
    to.insert(to.end(), tilings.begin(), tilings.end());
  };
  for (const auto dataflow : dataflows_of(machine, choice)) {
    if (!all.fastest.empty() && machine.dataflows == mmu::Dataflows::OutputStationary) break;
    Estimator estimator(problem, machine, parts, choice, dataflow);
    consider_all(problem, machine, choice, estimator);
    if (refusal.empty()) refusal = estimator.refusal();
    if (estimator.fastest().empty()) continue;
    const auto candidates = estimator.take();
    add(all.fastest, candidates.fastest);
    add(all.lightest, candidates.lightest);
  }
  if (all.fastest.empty()) refuse(choice, machine, refusal);
  return all;
}

std::vector<Box> boxes_of(const StreamProblem& problem, const Tiling& tiling) {
  const auto part = [](std::int64_t begin, std::int64_t step, std::int64_t all) {
    return Range{begin, std::min(begin + step, all)};
  };
  std::vector<Box> boxes;
  for (std::int64_t n = 0; n < problem.images; n += tiling.box_images) {
    for (std::int64_t y = 0; y < problem.y.out; y += tiling.box_y) {
      for (std::int64_t x = 0; x < problem.x.out; x += tiling.box_x) {
        boxes.push_back({part(n, tiling.box_images, problem.images),
                         part(y, tiling.box_y, problem.y.out),
                         part(x, tiling.box_x, problem.x.out)});
      }
    }
  }
  return boxes;
}

}  // namespace triptych::systolic
