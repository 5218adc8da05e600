// The output unit's numbers: the conversion of accumulators on their way to DRAM.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

class OutputUnit {
 public:
  explicit OutputUnit(const MachineConfig& config);

  /// From DRAM.
  void load(const LoadRegisters& load, const std::byte* dram);
  /// Writes the position that rows of accumulators make (one, or four of a pool) with a row of the
  /// operand, if the store has one. Number is float on a bf16 machine, std::int32_t on an int8 one.
  template <class Number>
  void store(const Store& store, std::span<const Number* const> rows, const std::byte* operand,
             std::byte* target) const;

 private:
  float before_pool(const Store& store, float value, std::size_t c) const;
  std::int32_t before_pool(const Store& store, std::int32_t value, std::size_t c) const;

  std::array<std::vector<std::uint32_t>, LoadRegisters::kFiles> registers_;
};

}  // namespace triptych::mmu
