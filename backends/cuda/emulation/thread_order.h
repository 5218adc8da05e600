// The order in which the emulator runs the threads of a block, as a seed of its schedule.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace triptych::cuda::emulation {

inline constexpr std::uint64_t kAscending = 0;
/// The last thread starts first, and goes on first behind a barrier of the block.
inline constexpr std::uint64_t kDescending = ~std::uint64_t{0};

}  // namespace triptych::cuda::emulation
