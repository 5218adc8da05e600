// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/functional.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "systolic/isa/accesses.h"
#include "systolic/twin/gather.h"
#include "systolic/twin/numerics.h"
#include "systolic/twin/pe_trace.h"

namespace triptych::mmu {
namespace {

template <class Element>
void read_row(const std::byte* from, std::uint32_t columns, Vector& to) {
  Element elements[kStrip] = {};
  std::memcpy(elements, from, columns * sizeof(Element));
  for (std::uint32_t c = 0; c < kStrip; ++c) to.lanes[c] = to_number(elements[c]);
}

constexpr std::size_t kMostRowBytes = 512;  ///< of 256 bf16 elements

/// A strip of a tile as numbers, with zeros outside its columns. Returns the end.
Vector* widen(const Tile& tile, const Strip& strip, PeKind pe, Vector* to) {
  if (pe == PeKind::Bf16 && strip.columns == kStrip) {
    const auto first = static_cast<std::uint32_t>(strip.first * sizeof(std::uint16_t));
    widen({tile.memory, tile.address + first, tile.pitch, tile.rows}, to);
    return to + tile.rows;
  }
  for (std::uint32_t r = 0; r < tile.rows; ++r, ++to) {
    if (pe == PeKind::Bf16)
      read_row<std::uint16_t>(tile.row(r) + 2 * strip.first, strip.columns, *to);
    else
      read_row<std::int8_t>(tile.row(r) + strip.first, strip.columns, *to);
  }
  return to;
}

/// Fills buffer rows of so many bytes with copies of one group each, the groups side by side in
/// DRAM. kGroup, their bytes, is a constant: small ones are common and fast only as straight code.
template <std::size_t kGroup>
void fill_rows(const std::byte* source, std::size_t rows, std::size_t row_bytes,
               std::byte* target) {
  for (const std::byte* end = source + rows * kGroup; source != end; source += kGroup)
    for (const std::byte* row_end = target + row_bytes; target != row_end; target += kGroup)
      std::memcpy(target, source, kGroup);
}

using FillRows = void (*)(const std::byte*, std::size_t, std::size_t, std::byte*);

template <std::size_t... kLog2>
constexpr std::array<FillRows, sizeof...(kLog2)> all_fill_rows(std::index_sequence<kLog2...>) {
  return {fill_rows<std::size_t{1} << kLog2>...};
}

}  // namespace

Functional::Functional(const MachineConfig& config, std::span<std::byte> dram)
    : config_(config),
      dram_(dram),
      output_unit_(config),
      vector_unit_(config),
      activations_(config_) {
  const std::size_t elements = std::size_t{config.buffer_rows} * config.rows;
  accumulators_.stride = strips(config.columns) * kStrip;
  const std::size_t rows =
      std::size_t{config.accumulator_rows} + (config.has_output_stationary() ? config.rows : 0);
  const std::size_t vectors = rows * strips(config.columns);
  if (config.pe == PeKind::Bf16) {
    buffer_bf16_.resize(elements);
    accumulators_.real.resize(vectors);
  } else {
    buffer_int8_.resize(elements);
    accumulators_.whole.resize(vectors * kStrip);
  }
}

void Functional::begin_program() {
  tiles_.clear();
  next_lane_ = 0;
}

void Functional::execute(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  if (opcode != Opcode::Matmul && opcode != Opcode::WeightLoad) multiply();
  switch (opcode) {
    case Opcode::Halt:
      return;
    case Opcode::Load:
      return load(decode<Load>(instruction));
    case Opcode::WeightLoad:
      return load_weights(decode<WeightLoad>(instruction));
    case Opcode::SetStream:
      activations_.forget();
      stream_ = decode<SetStream>(instruction);
      return;
    case Opcode::SetTaps:
      activations_.forget();
      taps_ = decode<SetTaps>(instruction);
      return;
    case Opcode::Matmul:
      return matmul(decode<Matmul>(instruction));
    case Opcode::SetOutput:
    case Opcode::SetOperand:
      return geometry_.set(instruction);
    case Opcode::LoadRegisters:
      return output_unit_.load(decode<LoadRegisters>(instruction), dram_.data());
    case Opcode::Store:
      return store(decode<Store>(instruction));
    case Opcode::VectorLoad:
      return vector_unit_.load(decode<VectorLoad>(instruction), dram_.data());
    case Opcode::VectorStore:
      keep_tiles();
      return vector_unit_.store(decode<VectorStore>(instruction), dram_.data());
    case Opcode::VectorOp:
      return vector_unit_.run(decode<VectorOp>(instruction), accumulators_);
  }
}

void Functional::show(const Instruction& instruction, std::uint64_t start, std::size_t index,
                      const PeWatcher& watcher) {
  multiply();
  const auto matmul = decode<Matmul>(instruction);
  const bool bf16 = config_.pe == PeKind::Bf16;
  const auto element = [&](std::uint32_t row, std::uint32_t lane) -> double {
    const std::size_t at = std::size_t{row} * config_.rows + lane;
    if (bf16) return from_bf16(buffer_bf16_[at]);
    return buffer_int8_[at];
  };
  const auto sum = [&](std::uint32_t row, std::uint32_t column) -> double {
    if (bf16) return accumulators_.real_at(row)[column];
    return accumulators_.whole_at(row)[column];
  };
  visit_pes(matmul,
            {config_, stream_, taps_, matmul.keep ? active_ : tiles_.front(), first_lane(matmul),
             matmul.output_stationary ? own_sums() : matmul.accumulator, element, sum},
            start, index, watcher);
}

void Functional::load(const Load& load) {
  activations_.forget();
  if (config_.pe == PeKind::Bf16)
    fill_buffer(load, buffer_bf16_);
  else
    fill_buffer(load, buffer_int8_);
}

template <class Element>
void Functional::fill_buffer(const Load& load, std::vector<Element>& buffer) {
  static constexpr auto fill_rows = all_fill_rows(std::make_index_sequence<10>());
  const std::size_t group = sizeof(Element) * config_.group(load.log2_group);
  const std::size_t row_bytes = config_.rows * sizeof(Element);
  const auto target = std::as_writable_bytes(std::span(buffer));
  for (std::uint32_t line = 0; line < load.lines; ++line) {
    const std::byte* source =
        dram_.data() + static_cast<std::uint32_t>(load.address + line * load.pitch);
    std::uint32_t row = load.buffer_row + line * load.buffer_pitch;
    for (std::uint32_t left = load.units; left > 0;) {  // pieces up to the buffer's end
      row &= config_.buffer_rows - 1;
      const std::uint32_t rows = std::min(left, config_.buffer_rows - row);
      std::byte* first = target.data() + row * row_bytes;
      if (group == row_bytes)
        std::memcpy(first, source, rows * row_bytes);
      else
        fill_rows[static_cast<std::size_t>(std::countr_zero(group))](source, rows, row_bytes,
                                                                     first);
      source += rows * group;
      row += rows;
      left -= rows;
    }
  }
}

void Functional::load_weights(const WeightLoad& load) {
  tiles_.push_back({load.rows, load.columns, dram_.data(), load.address, load.pitch});
}

/// DRAM is about to change.
void Functional::keep_tiles() {
  const auto keep = [&](Tile& tile) {
    if (tile.memory == nullptr || tile.copy) return;
    const std::uint32_t bytes = tile.columns * config_.element_bytes();
    auto copy = std::make_shared_for_overwrite<std::byte[]>(std::size_t{tile.rows} * bytes);
    for (std::uint32_t r = 0; r < tile.rows; ++r)
      std::memcpy(copy.get() + std::size_t{r} * bytes, tile.row(r), bytes);
    tile = {tile.rows, tile.columns, copy.get(), 0, bytes, std::move(copy)};
  };
  keep(active_);
  for (Tile& tile : tiles_) keep(tile);
}

std::uint32_t Functional::first_lane(const Matmul& matmul) const {
  return matmul.transpose ? next_lane_ : 0;
}

/// Adds to rows of their own in the order of the other dataflow's chains: results of a transposed
/// stream are positions here, and of a forward one values.
void Functional::output_stationary(const Matmul& matmul) {
  const Tile tile = std::move(tiles_.front());
  tiles_.pop_front();
  Matmul chained = matmul;
  chained.transpose = !matmul.transpose;
  chained.accumulator = own_sums();
  if (!grid_.add(chained, tile, 0)) {
    multiply();
    grid_.add(chained, tile, 0);
  }
  if (!matmul.drain) return;
  multiply();
  for (std::uint32_t i = 0; i < matmul.count; ++i) {
    if (config_.pe == PeKind::Bf16)
      std::copy_n(accumulators_.real_at(own_sums() + i), tile.columns,
                  accumulators_.real_at(matmul.accumulator + i));
    else
      std::copy_n(accumulators_.whole_at(own_sums() + i), tile.columns,
                  accumulators_.whole_at(matmul.accumulator + i));
  }
}

void Functional::matmul(const Matmul& matmul) {
  if (matmul.output_stationary) return output_stationary(matmul);
  if (!matmul.keep) {
    active_ = std::move(tiles_.front());
    tiles_.pop_front();
  }
  const std::uint32_t lane = first_lane(matmul);
  next_lane_ = matmul.abut ? (lane + matmul.count) % config_.rows : 0;
  if (grid_.add(matmul, active_, lane)) return;
  multiply();
  grid_.add(matmul, active_, lane);
}

void Functional::multiply() {
  if (grid_.empty()) return;
  const FlushSubnormals flush_subnormals;
  for (const GridPart& part : grid_.parts()) {
    if (part.steps == 0) continue;
    line_up_strips(part);
    if (config_.pe == PeKind::Bf16)
      stream(part,
             BufferView<std::uint16_t>{buffer_bf16_.data(), config_.rows, config_.buffer_rows - 1});
    else
      stream(part,
             BufferView<std::int8_t>{buffer_int8_.data(), config_.rows, config_.buffer_rows - 1});
  }
  grid_.clear();
}

/// Weights as numbers, each strip's chains from end to end.
void Functional::line_up_strips(const GridPart& part) {
  rows_ = 0;
  for (const auto& step : grid_.steps_of(part)) rows_ += step.rows;
  const auto columns = std::span(grid_.columns()).first(part.columns);
  std::size_t count = 0;
  for (const auto& column : columns) count += strips(column.columns);
  weights_.resize(count * rows_);
  Vector* to = weights_.data();
  strips_.clear();
  for (std::size_t i = 0; i < columns.size(); ++i)
    for (std::uint32_t c = 0; c < columns[i].columns; c += kStrip) {
      strips_.push_back({to, columns[i].accumulator, c, std::min(kStrip, columns[i].columns - c)});
      for (std::size_t step = part.first_step; step < part.first_step + part.steps; ++step)
        to = widen(grid_.tile(step, i), strips_.back(), config_.pe, to);
    }
}

template <class Element>
void Functional::stream(const GridPart& part, const BufferView<Element>& buffer) {
  activations_.begin(grid_.steps_of(part), stream_, taps_, buffer);
  const bool accumulate = part.first_step > 0 || grid_.accumulate();
  for (std::uint32_t first = 0; first < grid_.count(); first += kBlock) {
    const ChainCall call{activations_.block(first, buffer), strips_, rows_, accumulate, first};
    if (config_.pe == PeKind::Bf16)
      multiply_bf16(call, accumulators_);
    else
      multiply_int8(call, accumulators_);
  }
}

void Functional::store(const Store& store) {
  store.buffer ? activations_.forget() : keep_tiles();
  if (config_.pe == PeKind::Bf16)
    store_positions(store, accumulators_.real_at(0));
  else
    store_positions(store, accumulators_.whole_at(0));
}

template <class Number>
void Functional::store_positions(const Store& store, const Number* accumulators) {
  OutputWalk walk(geometry_, store);
  OutputWalk operand = OutputWalk::operand(geometry_, store);
  OutputWalk first_rows = OutputWalk::accumulators(geometry_, store);
  std::array<const Number*, 4> rows{};
  for (std::uint32_t m = 0; m < store.count; ++m) {
    const auto numbers = position_rows(geometry_.output, first_rows.address(), config_);
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = accumulators + std::size_t{numbers[i]} * accumulators_.stride;
    const auto position = std::span(rows).first(rows_of_position(store));
    const std::byte* with = dram_.data() + operand.address();
    if (store.buffer) {
      std::array<std::byte, kMostRowBytes> values{};  // zeros outside the columns
      output_unit_.store<Number>(store, position, with, values.data());
      fill_row(walk.address(), store.log2_group, values.data());
    } else {
      output_unit_.store<Number>(store, position, with, dram_.data() + walk.address());
    }
    walk.next();
    operand.next();
    first_rows.next();
  }
}

/// A group's elements over all banks.
void Functional::fill_row(std::uint32_t row, std::uint32_t log2_group, const std::byte* elements) {
  const std::size_t row_bytes = std::size_t{config_.rows} * config_.element_bytes();
  const std::size_t group = std::size_t{config_.group(log2_group)} * config_.element_bytes();
  const auto buffer = config_.pe == PeKind::Bf16 ? std::as_writable_bytes(std::span(buffer_bf16_))
                                                 : std::as_writable_bytes(std::span(buffer_int8_));
  std::byte* target = buffer.data() + (row & (config_.buffer_rows - 1)) * row_bytes;
  for (std::size_t byte = 0; byte < row_bytes; byte += group)
    std::memcpy(target + byte, elements, group);
}

std::vector<std::uint16_t> Functional::buffer() const {
  if (config_.pe == PeKind::Bf16) return buffer_bf16_;
  std::vector<std::uint16_t> raw(buffer_int8_.size());
  std::ranges::transform(buffer_int8_, raw.begin(),
                         [](std::int8_t value) { return static_cast<std::uint8_t>(value); });
  return raw;
}

std::vector<std::uint32_t> Functional::accumulators() const {
  std::vector<std::uint32_t> raw;
  raw.reserve(std::size_t{config_.accumulator_rows} * config_.columns);
  for (std::size_t row = 0; row < config_.accumulator_rows; ++row)
    for (std::size_t c = 0; c < config_.columns; ++c)
      raw.push_back(config_.pe == PeKind::Bf16
                        ? std::bit_cast<std::uint32_t>(accumulators_.real_at(row)[c])
                        : static_cast<std::uint32_t>(accumulators_.whole_at(row)[c]));
  return raw;
}

}  // namespace triptych::mmu
