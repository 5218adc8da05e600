// When the array's parts work on a slot; "Time" in docs/reference/mmu.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace triptych::mmu {

/// Cycle in which PE (row, column) begins a slot of the matmul that starts in cycle `start`: a sum's
/// latency behind the one above it, a cycle behind the one to its left.
inline std::uint64_t pe_cycle(std::uint64_t start, std::uint64_t slot, std::uint32_t row,
                              std::uint32_t column, std::uint32_t pe_latency) {
  return start + slot + 3 + std::uint64_t{row} * pe_latency + column;
}

}  // namespace triptych::mmu
