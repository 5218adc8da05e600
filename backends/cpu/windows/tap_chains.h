// Chains over the taps of a window, in their order, for many adjacent outputs: the operand of a tap
// at output p is plane[tap + p].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace triptych::cpu {

/// Outputs come in multiples of this many.
inline constexpr std::int64_t kChainBlock = 64;

/// sums[p] = fma(weights[t], plane[taps[t] + p], sum) for each t, the sum starting at 0.
void multiply_taps(const float* plane, std::span<const std::int64_t> taps, const float* weights,
                   std::int64_t outputs, float* sums);

/// sums[p] = 0 + plane[taps[0] + p] + plane[taps[1] + p] + ...
void add_taps(const float* plane, std::span<const std::int64_t> taps, std::int64_t outputs,
              float* sums);

/// y[p] = the larger of plane[taps[t] + p] and y[p], y[p] when either is NaN, for each t.
void largest_of_taps(const float* plane, std::span<const std::int64_t> taps, std::int64_t outputs,
                     float* y);
void largest_of_taps(const std::int8_t* plane, std::span<const std::int64_t> taps,
                     std::int64_t outputs, std::int8_t* y);

}  // namespace triptych::cpu
