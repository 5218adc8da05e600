// The filters of a convolution of 3x3 on their way into Winograd's domain, tile of rows by tile of
// rows, out of the weights as they lie in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/gemm/pack.h"

namespace triptych::cpu {

/// The weights. Tap t of the filter from input channel c to output channel o lies at data + o *
/// out_stride + c * in_stride + t. One of the strides is 9.
struct WinogradWeights {
  const float* data = nullptr;
  std::int64_t out_stride = 0;
  std::int64_t in_stride = 0;
  bool flipped = false;  ///< takes the taps in reverse order
};

/// u = G w G^T for output channels `rows`, kMaxNarrowRows at most, and input channels `channels`:
/// point p of filter (r, c) goes to u + p * point_stride + (c - channels.begin) * rows.size() + r -
/// rows.begin.
void transform_filter_tile(int tile, const WinogradWeights& weights, Range rows, Range channels,
                           float* u, std::int64_t point_stride);

/// Prefetches part `part` of `parts` of the data that transform_filter_tile reads.
void prefetch_filter_tile(const WinogradWeights& weights, Range rows, Range channels, int part,
                          int parts);

}  // namespace triptych::cpu
