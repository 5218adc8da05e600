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

/// A window with a stride and dilation of 1 along the rows: tap (ky, kx) of output (r, c) is
/// plane[(r + ky) * pitch + columns[kx] + c]. Neighbouring rows of outputs share most of its rows.
struct RowWindow {
  std::int64_t kernel_rows, pitch;
  std::span<const std::int64_t> columns;
  std::int64_t out_rows, out_columns;
};

/// True for the windows of multiply_rows(): 3, 5 or 7 rows, and outputs that fill its vectors.
bool shares_rows(const RowWindow& window);

/// The chains of multiply_taps(): sums[r * out_columns + c], taps row-major.
void multiply_rows(const float* plane, const RowWindow& window, const float* weights, float* sums);

/// Channels that stand side by side at each position, for multiply_channels().
inline constexpr std::int64_t kSideBySide = 16;

/// The chains of multiply_taps() for kSideBySide channels: channel c of output p is at
/// sums[p * kSideBySide + c], its operands at x[taps[t] + p * step + c] and
/// weights[t * kSideBySide + c].
void multiply_channels(const float* x, std::span<const std::int64_t> taps, const float* weights,
                       std::int64_t outputs, std::int64_t step, float* sums);

/// sums[p] = 0 + plane[taps[0] + p] + plane[taps[1] + p] + ...
void add_taps(const float* plane, std::span<const std::int64_t> taps, std::int64_t outputs,
              float* sums);

/// y[p] = the larger of plane[taps[t] + p] and y[p], y[p] when either is NaN, for each t.
void largest_of_taps(const float* plane, std::span<const std::int64_t> taps, std::int64_t outputs,
                     float* y);
void largest_of_taps(const std::int8_t* plane, std::span<const std::int64_t> taps,
                     std::int64_t outputs, std::int8_t* y);

}  // namespace triptych::cpu
