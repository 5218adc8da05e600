// When the array's parts work on a slot; "Time" in docs/reference/mmu.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace triptych::mmu {

/// Cycle in which PE (row, column) computes a slot of the matmul that starts in cycle `start`.
inline std::uint64_t pe_cycle(std::uint64_t start, std::uint64_t slot, std::uint32_t row,
                              std::uint32_t column) {
  return start + slot + 3 + row + column;
}

}  // namespace triptych::mmu
