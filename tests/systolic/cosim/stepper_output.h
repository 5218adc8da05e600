// The output unit of the stepper: one value after the other, as the manual writes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

class StepperOutput {
 public:
  explicit StepperOutput(const MachineConfig& config);

  /// What column c writes for this accumulator; a narrow value stands in the low bits.
  std::uint32_t value(const Store& store, std::uint32_t accumulator, std::uint32_t c) const;

  std::array<std::vector<std::uint32_t>, 3> registers;  ///< bias, multiplier, shift

 private:
  std::uint32_t of_float(const Store& store, std::uint32_t accumulator, std::uint32_t c) const;
  std::uint32_t of_integer(const Store& store, std::uint32_t accumulator, std::uint32_t c) const;

  PeKind pe_;
};

}  // namespace triptych::mmu
