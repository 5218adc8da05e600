// The output unit of the stepper: one value after the other, as the manual writes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

class StepperOutput {
 public:
  explicit StepperOutput(const MachineConfig& config);

  /// Value that column c writes for these accumulators of a position and this row of the operand: a
  /// value, a narrow one in the low bits, or a bit of a mask.
  std::uint32_t value(const Store& store, const std::vector<std::uint32_t>& accumulators,
                      const std::vector<std::byte>& operand, std::uint32_t c) const;

  std::array<std::vector<std::uint32_t>, 3> registers;  ///< bias, multiplier, shift

 private:
  std::uint32_t of_floats(const Store& store, const std::vector<std::uint32_t>& accumulators,
                          const std::vector<std::byte>& operand, std::uint32_t c) const;
  std::uint32_t of_integers(const Store& store, const std::vector<std::uint32_t>& accumulators,
                            const std::vector<std::byte>& operand, std::uint32_t c) const;
  float before_pool(const Store& store, float value, std::uint32_t c) const;
  std::int64_t before_pool(const Store& store, std::int64_t value, std::uint32_t c) const;

  PeKind pe_;
};

}  // namespace triptych::mmu
