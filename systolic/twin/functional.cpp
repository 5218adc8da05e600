// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/functional.h"

#include <algorithm>
#include <cstring>

#include "systolic/isa/accesses.h"
#include "systolic/twin/gather.h"
#include "systolic/twin/numerics.h"

namespace triptych::mmu {
namespace {

constexpr std::uint32_t kBlock = 32;  ///< slots gathered at a time: a multiple of eight

template <class T>
T read_value(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

/// The output unit's function of one accumulator of a bf16 machine.
float output_value(float value, const Store& store, std::uint32_t bias) {
  if (store.bias) value = soft_add(value, std::bit_cast<float>(bias));
  if (store.relu && !(value > 0) && value == value) value = 0.0F;
  return value;
}

std::int32_t output_value(std::int32_t value, const Store& store, std::uint32_t bias) {
  if (store.bias) value = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + bias);
  return store.relu ? std::max(value, 0) : value;
}

template <class Number>
void store_row(const Number* row, const Store& store, const std::uint32_t* bias,
               std::byte* target) {
  for (std::uint32_t c = 0; c < store.columns; ++c) {
    const Number value = output_value(row[c], store, bias[c]);
    if constexpr (std::is_same_v<Number, float>) {
      if (store.narrow) {
        const std::uint16_t narrow = to_bf16(value);
        std::memcpy(target + 2 * c, &narrow, sizeof narrow);
        continue;
      }
    }
    std::memcpy(target + 4 * c, &value, sizeof value);
  }
}

}  // namespace

Functional::Functional(const MachineConfig& config, std::span<std::byte> dram)
    : config_(config), dram_(dram), bias_(config.columns) {
  const std::size_t elements = std::size_t{config.buffer_rows} * config.rows;
  accumulators_.stride = padded(config.columns);
  const std::size_t values = std::size_t{config.accumulator_rows} * accumulators_.stride;
  if (config.pe == PeKind::Bf16) {
    buffer_bf16_.resize(elements);
    accumulators_.real.resize(values);
  } else {
    buffer_int8_.resize(elements);
    accumulators_.whole.resize(values);
  }
  activations_.resize(std::size_t{kBlock} * config.rows);
}

void Functional::begin_program() { tiles_.clear(); }

void Functional::execute(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::Halt:
      return;
    case Opcode::Load:
      return load(decode<Load>(instruction));
    case Opcode::WeightLoad:
      return load_weights(decode<WeightLoad>(instruction));
    case Opcode::SetStream:
      stream_ = decode<SetStream>(instruction);
      return;
    case Opcode::SetTaps:
      taps_ = decode<SetTaps>(instruction);
      return;
    case Opcode::Matmul:
      return matmul(decode<Matmul>(instruction));
    case Opcode::SetOutput:
      output_ = decode<SetOutput>(instruction);
      return;
    case Opcode::LoadBias: {
      const auto load = decode<LoadBias>(instruction);
      std::memcpy(bias_.data(), dram_.data() + load.address, std::size_t{4} * load.columns);
      return;
    }
    case Opcode::Store:
      return store(decode<Store>(instruction));
  }
}

void Functional::load(const Load& load) {
  if (config_.pe == PeKind::Bf16)
    fill_buffer(load, buffer_bf16_);
  else
    fill_buffer(load, buffer_int8_);
}

template <class Element>
void Functional::fill_buffer(const Load& load, std::vector<Element>& buffer) {
  const std::size_t group = std::size_t{1} << load.log2_group;
  const std::size_t bytes = group * sizeof(Element);
  for (std::uint32_t line = 0; line < load.lines; ++line) {
    const std::byte* source =
        dram_.data() + static_cast<std::uint32_t>(load.address + line * load.pitch);
    const std::uint32_t first = load.buffer_row + line * load.buffer_pitch;
    for (std::uint32_t unit = 0; unit < load.units; ++unit, source += bytes) {
      Element* row =
          buffer.data() + std::size_t{(first + unit) & (config_.buffer_rows - 1)} * config_.rows;
      for (std::size_t lane = 0; lane < config_.rows; lane += group)
        std::memcpy(row + lane, source, bytes);
    }
  }
}

void Functional::load_weights(const WeightLoad& load) {
  Tile tile{load.rows, load.columns, {}};
  const std::uint32_t stride = padded(load.columns);
  tile.weights.resize(std::size_t{load.rows} * stride);
  for (std::uint32_t r = 0; r < load.rows; ++r) {
    const std::byte* source =
        dram_.data() + static_cast<std::uint32_t>(load.address + r * load.pitch);
    float* row = tile.weights.data() + std::size_t{r} * stride;
    for (std::uint32_t c = 0; c < load.columns; ++c)
      row[c] = config_.pe == PeKind::Bf16 ? to_number(read_value<std::uint16_t>(source + 2 * c))
                                          : to_number(read_value<std::int8_t>(source + c));
  }
  tiles_.push_back(std::move(tile));
}

void Functional::matmul(const Matmul& matmul) {
  if (!matmul.keep) {
    active_ = std::move(tiles_.front());
    tiles_.pop_front();
  }
  const FlushSubnormals flush_subnormals;
  if (config_.pe == PeKind::Bf16)
    stream(matmul,
           BufferView<std::uint16_t>{buffer_bf16_.data(), config_.rows, config_.buffer_rows - 1});
  else
    stream(matmul,
           BufferView<std::int8_t>{buffer_int8_.data(), config_.rows, config_.buffer_rows - 1});
}

template <class Element>
void Functional::stream(const Matmul& matmul, const BufferView<Element>& buffer) {
  if (matmul.transpose)
    stream_values(matmul, buffer);
  else
    stream_positions(matmul, buffer);
}

template <class Element>
void Functional::stream_positions(const Matmul& matmul, const BufferView<Element>& buffer) {
  TapWalk taps(taps_, matmul);
  collect_runs(taps, 0, active_.rows, config_.rows, runs_);
  PositionWalk walk(stream_, matmul);
  for (std::uint32_t m = 0; m < matmul.count; m += kBlock) {
    positions_.clear();
    for (std::uint32_t i = m; i < std::min(matmul.count, m + kBlock); ++i, walk.next())
      positions_.push_back(walk.position());
    gather(buffer, stream_, positions_, runs_, config_.rows, activations_.data());
    multiply({activations_.data(), static_cast<std::ptrdiff_t>(config_.rows), 1,
              static_cast<std::uint32_t>(positions_.size())},
             matmul, m);
  }
}

template <class Element>
void Functional::stream_values(const Matmul& matmul, const BufferView<Element>& buffer) {
  positions_.clear();
  PositionWalk walk(stream_, matmul);
  for (std::uint32_t i = 0; i < active_.rows; ++i, walk.next())
    positions_.push_back(walk.position());
  TapWalk taps(taps_, matmul);
  for (std::uint32_t p = 0; p < matmul.count; p += kBlock) {
    const std::uint32_t count = std::min(kBlock, matmul.count - p);
    collect_runs(taps, p, count, config_.rows, runs_);
    gather(buffer, stream_, positions_, runs_, kBlock, activations_.data());
    multiply({activations_.data(), 1, kBlock, count}, matmul, p);
  }
}

void Functional::multiply(const ActivationBlock& block, const Matmul& matmul, std::uint32_t first) {
  const std::uint32_t row = matmul.accumulator + first;
  if (config_.pe == PeKind::Bf16)
    multiply_bf16(block, active_, matmul.accumulate, row, accumulators_);
  else
    multiply_int8(block, active_, matmul.accumulate, row, accumulators_);
}

void Functional::store(const Store& store) {
  OutputWalk walk(output_, store);
  for (std::uint32_t m = 0; m < store.count; ++m, walk.next()) {
    const std::size_t row = std::size_t{store.accumulator + m} * accumulators_.stride;
    std::byte* target = dram_.data() + walk.address();
    if (config_.pe == PeKind::Bf16)
      store_row(accumulators_.real.data() + row, store, bias_.data(), target);
    else
      store_row(accumulators_.whole.data() + row, store, bias_.data(), target);
  }
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
    for (std::size_t c = row * accumulators_.stride;
         c < row * accumulators_.stride + config_.columns; ++c)
      raw.push_back(config_.pe == PeKind::Bf16
                        ? std::bit_cast<std::uint32_t>(accumulators_.real[c])
                        : static_cast<std::uint32_t>(accumulators_.whole[c]));
  return raw;
}

}  // namespace triptych::mmu
