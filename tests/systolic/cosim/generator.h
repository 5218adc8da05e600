// Random machines, programs and memories, each a function of its seed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

inline constexpr std::uint32_t kCaseDramBytes = 1U << 16;

/// One experiment of the co-simulation.
struct Case {
  MachineConfig machine;
  Program program;  ///< without tokens: see synchronise()
  std::vector<std::byte> dram;
};

/// Any small machine with any DRAM.
MachineConfig random_machine(std::mt19937& random);
/// One with a vector unit.
MachineConfig random_vector_machine(std::mt19937& random);
/// The given machine with any weight scheme and any DRAM.
MachineConfig vary_machine(MachineConfig machine, std::mt19937& random);
Case random_case(const MachineConfig& machine, std::mt19937& random);

}  // namespace triptych::mmu
