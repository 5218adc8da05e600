// The vector unit's memory and its numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"
#include "systolic/twin/array.h"

namespace triptych::mmu {

class VectorUnit {
 public:
  explicit VectorUnit(const MachineConfig& config);

  void load(const VectorLoad& load, const std::byte* dram);
  void store(const VectorStore& store, std::byte* dram) const;
  void run(const VectorOp& op, const Accumulators& accumulators);

 private:
  std::uint32_t* row(std::int64_t number) {
    return rows_.data() + static_cast<std::size_t>(number) * columns_;
  }
  const std::uint32_t* row(std::int64_t number) const {
    return rows_.data() + static_cast<std::size_t>(number) * columns_;
  }

  std::uint32_t columns_;
  std::vector<std::uint32_t> rows_;      ///< bits of binary32 numbers or of integers, [row][lane]
  std::vector<std::uint32_t> constant_;  ///< the scalar in every lane
};

}  // namespace triptych::mmu
