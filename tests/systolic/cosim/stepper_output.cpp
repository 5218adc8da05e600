// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper_output.h"

#include <bit>

#include "systolic/twin/numerics.h"

namespace triptych::mmu {
namespace {

std::int64_t cut(std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low) return low;
  return value > high ? high : value;
}

}  // namespace

StepperOutput::StepperOutput(const MachineConfig& config) : pe_(config.pe) {
  for (auto& file : registers) file.resize(config.columns);
}

std::uint32_t StepperOutput::value(const Store& store, std::uint32_t accumulator,
                                   std::uint32_t c) const {
  return pe_ == PeKind::Bf16 ? of_float(store, accumulator, c) : of_integer(store, accumulator, c);
}

std::uint32_t StepperOutput::of_float(const Store& store, std::uint32_t accumulator,
                                      std::uint32_t c) const {
  auto value = std::bit_cast<float>(accumulator);
  if (store.scale) value = soft_multiply(value, std::bit_cast<float>(registers[1][c]));
  if (store.bias) value = soft_add(value, std::bit_cast<float>(registers[0][c]));
  if (store.relu && value <= 0) value = 0;
  return store.narrow ? to_bf16(value) : std::bit_cast<std::uint32_t>(value);
}

std::uint32_t StepperOutput::of_integer(const Store& store, std::uint32_t accumulator,
                                        std::uint32_t c) const {
  if (store.bias) accumulator += registers[0][c];
  std::int64_t value = static_cast<std::int32_t>(accumulator);
  if (store.scale) {
    const std::int64_t shift = cut(static_cast<std::int32_t>(registers[2][c]), 1, 62);
    value *= static_cast<std::int32_t>(registers[1][c]);
    value = (value + (std::int64_t{1} << (shift - 1))) >> shift;
    value = cut(value, -(std::int64_t{1} << 31), (std::int64_t{1} << 31) - 1);
  }
  if (store.relu && value < 0) value = 0;
  if (store.narrow) value = cut(value, -128, 127);
  return static_cast<std::uint32_t>(value);
}

}  // namespace triptych::mmu
