// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/output.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "systolic/twin/numerics.h"

namespace triptych::mmu {
namespace {

constexpr std::size_t kMaxColumns = 256;

float rectified(float value) { return !(value > 0) && value == value ? 0.0F : value; }
std::int32_t rectified(std::int32_t value) { return std::max(value, 0); }

std::uint16_t narrowed(float value) { return to_bf16(value); }
std::int8_t narrowed(std::int32_t value) {
  return static_cast<std::int8_t>(std::clamp(value, -128, 127));
}

float widened(std::uint16_t value) { return from_bf16(value); }
std::int32_t widened(std::int8_t value) { return value; }

float sum(float value, float residual) { return soft_add(value, residual); }
std::int32_t sum(std::int32_t value, std::int32_t residual) {
  return cut_to_i32(std::int64_t{value} + residual);
}

template <class Number>
void add_residual(const Store& store, const std::byte* operand, Number* values) {
  using Narrow = decltype(narrowed(Number()));
  for (std::uint32_t c = 0; c < store.columns; ++c) {
    Number residual;
    if (store.narrow) {
      Narrow narrow;
      std::memcpy(&narrow, operand + c * sizeof narrow, sizeof narrow);
      residual = widened(narrow);
    } else {
      std::memcpy(&residual, operand + c * sizeof residual, sizeof residual);
    }
    values[c] = sum(values[c], residual);
  }
}

template <class Number>
void select(const std::byte* mask, std::uint32_t columns, Number* values) {
  for (std::uint32_t c = 0; c < columns; ++c)
    if ((mask[c / 8] >> c % 8 & std::byte{1}) == std::byte{0}) values[c] = 0;
}

/// True when the store writes the accumulators as they are.
bool is_copy(const Store& store) {
  return !store.bias && !store.relu && !store.narrow && !store.scale && !store.pool &&
         !store.mask && !store.residual && !store.select;
}

template <class Number>
void write_mask(const Number* values, std::uint32_t columns, std::byte* target) {
  for (std::uint32_t c = 0; c < columns; ++c) {
    if (c % 8 == 0) target[c / 8] = std::byte{0};
    if (values[c] > 0) target[c / 8] |= std::byte{1} << c % 8;
  }
}

template <class Number>
void write_narrow(const Number* values, std::uint32_t columns, std::byte* target) {
  std::array<decltype(narrowed(Number())), kMaxColumns> narrow;
  for (std::uint32_t c = 0; c < columns; ++c) narrow[c] = narrowed(values[c]);
  std::memcpy(target, narrow.data(), columns * sizeof narrow[0]);
}

}  // namespace

OutputUnit::OutputUnit(const MachineConfig& config) {
  for (auto& file : registers_) file.resize(config.columns);
}

void OutputUnit::load(const LoadRegisters& load, const std::byte* dram) {
  std::uint32_t address = load.address;
  for (std::uint32_t file = load.file; file <= load.file + load.more; ++file) {
    std::memcpy(registers_[file].data(), dram + address, std::size_t{4} * load.columns);
    address += load.pitch;
  }
}

float OutputUnit::before_pool(const Store& store, float value, std::size_t c) const {
  const auto& [bias, multiplier, shift] = registers_;
  if (store.scale) value = soft_multiply(value, std::bit_cast<float>(multiplier[c]));
  return store.bias ? soft_add(value, std::bit_cast<float>(bias[c])) : value;
}

std::int32_t OutputUnit::before_pool(const Store& store, std::int32_t value, std::size_t c) const {
  const auto& [bias, multiplier, shift] = registers_;
  if (store.bias) value = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + bias[c]);
  if (!store.scale) return value;
  return requantize(value, static_cast<std::int32_t>(multiplier[c]),
                    static_cast<std::int32_t>(shift[c]));
}

template <class Number>
void OutputUnit::store(const Store& store, std::span<const Number* const> rows,
                       const std::byte* operand, std::byte* target) const {
  if (is_copy(store)) {
    std::memcpy(target, rows[0], std::size_t{4} * store.columns);
    return;
  }
  std::array<Number, kMaxColumns> values;
  for (std::uint32_t c = 0; c < store.columns; ++c) values[c] = before_pool(store, rows[0][c], c);
  for (const Number* row : rows.subspan(1))
    for (std::uint32_t c = 0; c < store.columns; ++c) {
      const Number value = before_pool(store, row[c], c);
      if (value > values[c]) values[c] = value;
    }
  if (store.residual) add_residual(store, operand, values.data());
  if (store.select) select(operand, store.columns, values.data());
  if (store.relu)
    for (std::uint32_t c = 0; c < store.columns; ++c) values[c] = rectified(values[c]);
  if (store.mask)
    write_mask(values.data(), store.columns, target);
  else if (store.narrow)
    write_narrow(values.data(), store.columns, target);
  else
    std::memcpy(target, values.data(), std::size_t{4} * store.columns);
}

template void OutputUnit::store(const Store&, std::span<const float* const>, const std::byte*,
                                std::byte*) const;
template void OutputUnit::store(const Store&, std::span<const std::int32_t* const>,
                                const std::byte*, std::byte*) const;

}  // namespace triptych::mmu
