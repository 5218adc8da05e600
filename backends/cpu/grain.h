// How much of a loop is worth a thread of its own. Handing a part to a thread that polls takes 0.3
// to 0.5 us (two cores of an AMD EPYC, measured), so a grain is about 1 us of work.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace triptych::cpu {

/// Elements of float32 with one simple operation each, or copied.
inline constexpr std::int64_t kGrainElements = 4096;

/// Multiply-adds of a product at the rate of packed panels.
inline constexpr std::int64_t kGrainMultiplies = 65536;

/// Simple operations in the time of an exponential, a division or an element of a tree of sums.
/// Multiply-adds of packed panels in the time of one along a window.
inline constexpr std::int64_t kSlowOperation = 4;

/// Units for the grain of parallel_for, where a unit does so many operations, of which `worth` are
/// a grain.
inline std::int64_t grain_of(std::int64_t operations, std::int64_t worth = kGrainElements) {
  return std::max<std::int64_t>(1, worth / std::max<std::int64_t>(1, operations));
}

}  // namespace triptych::cpu
