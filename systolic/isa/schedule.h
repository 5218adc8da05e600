// When the array's parts work on a slot ("Time" in docs/reference/mmu.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// A slot of a matmul in one PE.
struct PeSlot {
  std::uint64_t slot = 0;
  std::uint32_t row = 0, column = 0;
};

/// Cycle in which that PE processes that slot of the matmul that starts in cycle `start`: a sum's
/// latency after the PE above it, a cycle after the one to its left.
inline std::uint64_t pe_cycle(const MachineConfig& machine, std::uint64_t start,
                              const PeSlot& place) {
  return start + place.slot + 3 + std::uint64_t{place.row} * machine.pe_latency + place.column;
}

}  // namespace triptych::mmu
