// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/array_view.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>

#include "systolic/isa/check.h"
#include "systolic/twin/functional.h"
#include "systolic/twin/geometry.h"
#include "systolic/twin/numerics.h"

namespace triptych::mmu {
namespace {

/// Cycles from a slot's leaving the address generator to PE (0, 0).
constexpr std::int64_t kToArray = 3;
/// From the loader's first cycle to the first weight in PE (0, 0).
constexpr std::int64_t kToTop = 2;

/// Index of the last one whose cycle is not after this one.
template <class Item>
std::optional<std::size_t> last_until(const std::vector<Item>& items, std::int64_t cycle,
                                      std::uint64_t Item::*when) {
  if (cycle < 0) return std::nullopt;
  const auto after = std::ranges::upper_bound(items, static_cast<std::uint64_t>(cycle), {}, when);
  if (after == items.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - items.begin()) - 1;
}

}  // namespace

/// Walks through the program once, in program order.
class ArrayView::Builder {
 public:
  Builder(ArrayView& view, const Program& program, const RunReport& report,
          std::span<const std::byte> dram)
      : view_(view),
        program_(program),
        report_(report),
        machine_(view.machine_),
        dram_(dram.begin(), dram.end()),
        functional_(machine_, dram_),
        accumulators_(std::size_t{machine_.accumulator_rows} * machine_.columns) {}

  void build() {
    functional_.begin_program();
    for (std::size_t i = 0; i < program_.size(); ++i) {
      const Instruction& instruction = program_[i];
      if (instruction.opcode() == Opcode::WeightLoad) add_tile(i);
      if (instruction.opcode() == Opcode::SetStream) stream_ = decode<SetStream>(instruction);
      if (instruction.opcode() == Opcode::SetTaps) taps_ = decode<SetTaps>(instruction);
      if (instruction.opcode() == Opcode::Matmul) add_stream(i);
      functional_.execute(instruction);
      if (instruction.opcode() == Opcode::Load) buffer_ = functional_.buffer();
    }
    move_tiles();
  }

 private:
  void add_tile(std::size_t index) {
    const auto load = decode<WeightLoad>(program_[index]);
    Tile tile{load.rows, load.columns, {}, report_.times[index].end};
    const std::uint32_t element = machine_.element_bytes();
    for (std::uint32_t r = 0; r < load.rows; ++r)
      for (std::uint32_t c = 0; c < load.columns; ++c) {
        const auto address = static_cast<std::uint32_t>(load.address + r * load.pitch);
        std::uint16_t bits = 0;
        std::memcpy(&bits, dram_.data() + address + std::size_t{c} * element, element);
        tile.weights.push_back(bits);
      }
    view_.tiles_.push_back(std::move(tile));
  }

  void add_stream(std::size_t index) {
    const auto matmul = decode<Matmul>(program_[index]);
    if (!matmul.keep) {
      active_ = next_++;
      view_.swaps_.push_back({report_.times[index].start, active_});
    }
    Stream stream{index, report_.times[index].start, matmul.count, active_, {}, {}, {}};
    gather(matmul, stream);
    chain(matmul, stream);
    const std::uint32_t lane = matmul.transpose ? next_lane_ : 0;
    next_lane_ = matmul.abut ? (lane + matmul.count) & (machine_.rows - 1) : 0;
    view_.streams_.push_back(std::move(stream));
  }

  std::uint16_t read(const Position& position, const Tap& tap, std::uint32_t lane) const {
    if (!inside(stream_, position, tap)) return 0;
    const std::uint32_t row = (position.address + tap.offset) & (machine_.buffer_rows - 1);
    return buffer_[std::size_t{row} * machine_.rows + lane];
  }

  /// Forward: slot p is position p, array row r its value r. Transposed: slot p is value p, array
  /// row r its position r.
  void gather(const Matmul& matmul, Stream& stream) const {
    const std::uint32_t rows = machine_.rows;
    std::vector<Position> positions;
    PositionWalk position(stream_, matmul);
    for (std::uint32_t m = 0; m < (matmul.transpose ? rows : matmul.count); ++m, position.next())
      positions.push_back(position.position());
    std::vector<Tap> taps;
    TapWalk tap(taps_, matmul);
    for (std::uint32_t k = 0; k < (matmul.transpose ? matmul.count : rows); ++k, tap.next())
      taps.push_back(tap.tap());
    for (std::uint32_t p = 0; p < matmul.count; ++p)
      for (std::uint32_t r = 0; r < rows; ++r)
        stream.activations.push_back(
            matmul.transpose ? read(positions[r], taps[p], (next_lane_ + p) & (rows - 1))
                             : read(positions[p], taps[r], r));
  }

  void chain(const Matmul& matmul, Stream& stream) {
    const Tile& tile = view_.tiles_[stream.tile];
    for (std::uint32_t p = 0; p < matmul.count; ++p) {
      const std::size_t row = (matmul.accumulator + p) & (machine_.accumulator_rows - 1);
      std::uint32_t* sums = accumulators_.data() + row * machine_.columns;
      if (!matmul.accumulate) std::fill_n(sums, tile.columns, 0);
      stream.tops.insert(stream.tops.end(), sums, sums + machine_.columns);
      for (std::uint32_t r = 0; r < machine_.rows; ++r) {
        const std::uint16_t activation = stream.activations[std::size_t{p} * machine_.rows + r];
        for (std::uint32_t c = 0; r < tile.rows && c < tile.columns; ++c)
          sums[c] = multiply_add(activation, tile.weights[r * tile.columns + c], sums[c]);
        stream.sums.insert(stream.sums.end(), sums, sums + machine_.columns);
      }
    }
  }

  std::uint32_t multiply_add(std::uint16_t activation, std::uint16_t weight,
                             std::uint32_t sum) const {
    if (machine_.pe == PeKind::Bf16)
      return std::bit_cast<std::uint32_t>(
          soft_fma(from_bf16(activation), from_bf16(weight), std::bit_cast<float>(sum)));
    const int product = static_cast<std::int8_t>(activation) * static_cast<std::int8_t>(weight);
    return sum + static_cast<std::uint32_t>(product);
  }

  /// "Loader" of the manual: idle, the tile there, the shadow weights free.
  void move_tiles() {
    std::uint64_t free = 0;
    for (std::size_t i = 0; i < view_.tiles_.size(); ++i) {
      view_.tiles_[i].moved = std::max(view_.tiles_[i].moved, free);
      free = view_.tiles_[i].moved + machine_.rows;
      if (i < view_.swaps_.size()) free = std::max(free, view_.swaps_[i].start + busy_after_swap());
    }
  }
  std::uint64_t busy_after_swap() const {
    switch (machine_.weight_scheme) {
      case WeightScheme::PerColumn:
        return machine_.rows;
      case WeightScheme::Drained:
        return machine_.rows + machine_.columns;
      case WeightScheme::PassThrough:
        break;
    }
    return 1;
  }

  ArrayView& view_;
  const Program& program_;
  const RunReport& report_;
  const MachineConfig& machine_;
  std::vector<std::byte> dram_;
  Functional functional_;
  std::vector<std::uint16_t> buffer_;
  std::vector<std::uint32_t> accumulators_;
  SetStream stream_;
  SetTaps taps_;
  std::size_t next_ = 0, active_ = 0;
  std::uint32_t next_lane_ = 0;
};

ArrayView::ArrayView(const Program& program, const MachineConfig& machine, const RunReport& report,
                     std::span<const std::byte> dram)
    : machine_(machine) {
  check_program(program, machine);
  Builder(*this, program, report, dram).build();
}

std::optional<PeWeight> ArrayView::weight_of(std::size_t tile, std::uint32_t row,
                                             std::uint32_t column) const {
  const Tile& from = tiles_[tile];
  if (row >= from.rows || column >= from.columns) return PeWeight{};
  return PeWeight{from.weights[row * from.columns + column], true};
}

const ArrayView::Stream* ArrayView::stream_at(std::int64_t cycle) const {
  const auto last = last_until(streams_, cycle, &Stream::start);
  if (!last) return nullptr;
  const Stream& stream = streams_[*last];
  return static_cast<std::uint64_t>(cycle) < stream.start + stream.slots ? &stream : nullptr;
}

PeState ArrayView::at(std::uint64_t cycle, std::uint32_t row, std::uint32_t column) const {
  PeState state;
  const std::int64_t skew = std::int64_t{row} + column;
  const auto now = static_cast<std::int64_t>(cycle);
  const std::int64_t slot = now - kToArray - skew;
  if (const Stream* stream = stream_at(slot)) {
    const std::uint64_t p = static_cast<std::uint64_t>(slot) - stream->start;
    state.activation = stream->activations[p * machine_.rows + row];
  }
  if (const Stream* stream = stream_at(slot - 1);
      stream != nullptr && column < tiles_[stream->tile].columns) {
    const std::uint64_t p = static_cast<std::uint64_t>(slot - 1) - stream->start;
    state.sum = stream->sums[(p * machine_.rows + row) * machine_.columns + column];
  }
  if (const auto swap = last_until(swaps_, slot, &Swap::start))
    state.weight = weight_of(swaps_[*swap].tile, row, column);
  // The tile's row 0 has been here since cycle moved + kToTop + skew; row r stays in PE row r.
  const std::int64_t passing = now - kToTop - skew;
  if (const auto tile = last_until(tiles_, passing - row, &Tile::moved))
    state.shadow = weight_of(*tile, row, column);
  if (const auto tile = last_until(tiles_, passing, &Tile::moved)) {
    const auto passes = static_cast<std::uint64_t>(passing) - tiles_[*tile].moved;
    if (passes < machine_.rows)
      state.moving = weight_of(*tile, static_cast<std::uint32_t>(passes), column);
  }
  return state;
}

std::optional<std::uint32_t> ArrayView::top(std::uint64_t cycle, std::uint32_t column) const {
  const std::int64_t slot = static_cast<std::int64_t>(cycle) - kToArray - column;
  const Stream* stream = stream_at(slot);
  if (stream == nullptr || column >= tiles_[stream->tile].columns) return std::nullopt;
  return stream
      ->tops[(static_cast<std::uint64_t>(slot) - stream->start) * machine_.columns + column];
}

std::optional<std::size_t> ArrayView::matmul_at(std::uint64_t cycle, std::uint32_t row,
                                                std::uint32_t column) const {
  const Stream* stream = stream_at(static_cast<std::int64_t>(cycle) - kToArray - row - column);
  if (stream == nullptr) return std::nullopt;
  return stream->instruction;
}

}  // namespace triptych::mmu
