// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper_output.h"

#include <algorithm>
#include <bit>

#include "systolic/twin/numerics.h"

namespace triptych::mmu {
namespace {

std::int64_t cut(std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low) return low;
  return value > high ? high : value;
}

std::uint32_t little_endian(const std::vector<std::byte>& bytes, std::size_t first,
                            std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value |= std::to_integer<std::uint32_t>(bytes[first + i]) << 8 * i;
  return value;
}

bool selected(const std::vector<std::byte>& mask, std::uint32_t c) {
  return (little_endian(mask, c / 8, 1) >> c % 8 & 1) != 0;
}

}  // namespace

StepperOutput::StepperOutput(const MachineConfig& config) : pe_(config.pe) {
  for (auto& file : registers) file.resize(config.columns);
}

std::uint32_t StepperOutput::value(const Store& store,
                                   const std::vector<std::uint32_t>& accumulators,
                                   const std::vector<std::byte>& operand, std::uint32_t c) const {
  return pe_ == PeKind::Bf16 ? of_floats(store, accumulators, operand, c)
                             : of_integers(store, accumulators, operand, c);
}

float StepperOutput::before_pool(const Store& store, float value, std::uint32_t c) const {
  if (store.scale) value = soft_multiply(value, std::bit_cast<float>(registers[1][c]));
  if (store.bias) value = soft_add(value, std::bit_cast<float>(registers[0][c]));
  return value;
}

std::int64_t StepperOutput::before_pool(const Store& store, std::int64_t value,
                                        std::uint32_t c) const {
  if (store.bias) value = static_cast<std::int32_t>(value + registers[0][c]);
  if (!store.scale) return value;
  const std::int64_t shift = cut(static_cast<std::int32_t>(registers[2][c]), 1, 62);
  value *= static_cast<std::int32_t>(registers[1][c]);
  value = (value + (std::int64_t{1} << (shift - 1))) >> shift;
  return cut(value, -(std::int64_t{1} << 31), (std::int64_t{1} << 31) - 1);
}

std::uint32_t StepperOutput::of_floats(const Store& store,
                                       const std::vector<std::uint32_t>& accumulators,
                                       const std::vector<std::byte>& operand,
                                       std::uint32_t c) const {
  float value = before_pool(store, std::bit_cast<float>(accumulators[0]), c);
  for (const std::uint32_t accumulator : accumulators) {
    const float other = before_pool(store, std::bit_cast<float>(accumulator), c);
    if (other > value) value = other;
  }
  if (store.residual) {
    const std::uint32_t bits =
        store.narrow ? little_endian(operand, 2 * c, 2) << 16 : little_endian(operand, 4 * c, 4);
    value = soft_add(value, std::bit_cast<float>(bits));
  }
  if (store.select && !selected(operand, c)) value = 0;
  if (store.relu && value <= 0) value = 0;
  if (store.mask) return value > 0 ? 1 : 0;
  return store.narrow ? to_bf16(value) : std::bit_cast<std::uint32_t>(value);
}

std::uint32_t StepperOutput::of_integers(const Store& store,
                                         const std::vector<std::uint32_t>& accumulators,
                                         const std::vector<std::byte>& operand,
                                         std::uint32_t c) const {
  std::int64_t value = -(std::int64_t{1} << 31);
  for (const std::uint32_t accumulator : accumulators)
    value = std::max(value,
                     before_pool(store, std::int64_t{static_cast<std::int32_t>(accumulator)}, c));
  if (store.residual && store.narrow)
    value += static_cast<std::int8_t>(little_endian(operand, c, 1));
  if (store.residual && !store.narrow)
    value += static_cast<std::int32_t>(little_endian(operand, 4 * c, 4));
  value = cut(value, -(std::int64_t{1} << 31), (std::int64_t{1} << 31) - 1);
  if (store.select && !selected(operand, c)) value = 0;
  if (store.relu && value < 0) value = 0;
  if (store.mask) return value > 0 ? 1 : 0;
  if (store.narrow) value = cut(value, -128, 127);
  return static_cast<std::uint32_t>(value);
}

}  // namespace triptych::mmu
