// The output unit's numbers: what becomes of an accumulator row on its way to DRAM.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

class OutputUnit {
 public:
  explicit OutputUnit(const MachineConfig& config);

  void load(const LoadRegisters& load, const std::byte* source);
  /// Writes the position that a row of accumulators makes.
  void store(const Store& store, const float* sums, std::byte* target);
  void store(const Store& store, const std::int32_t* sums, std::byte* target);

 private:
  std::array<std::vector<std::uint32_t>, LoadRegisters::kFiles> registers_;
  std::vector<float> real_;  ///< one row; the other PE kind's is empty
  std::vector<std::int32_t> whole_;
};

}  // namespace triptych::mmu
