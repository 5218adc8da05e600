// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/winograd/filters.h"

#include <hwy/cache_control.h>

#include "backends/cpu/winograd/winograd.h"
#include "core/tensor/tensor.h"

namespace triptych::cpu {

void transform_filter_tile(int tile, const WinogradWeights& weights, Range rows, Range channels,
                           float* u, std::int64_t point_stride) {
  static constexpr std::int64_t all_taps[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  // Few channels at a time, so that their taps stay in the first-level cache.
  constexpr std::int64_t few = 32;
  alignas(kAlignment) float taps[9 * few * kMaxNarrowRows];
  for (auto c = channels.begin; c < channels.end; c += few) {
    const auto count = std::min(few, channels.end - c);
    const RowSource source = {
        .data = weights.data + rows.begin * weights.out_stride + c * weights.in_stride,
        .row_stride = weights.out_stride,
        .channel_stride = weights.in_stride,
        .channels = count,
        .tap_offsets = all_taps};
    pack_tile(source, rows.size(), taps, Rounding::None);
    transform_filters(tile, {.taps = taps,
                             .count = count * rows.size(),
                             .flipped = weights.flipped,
                             .u = u + (c - channels.begin) * rows.size(),
                             .point_stride = point_stride});
  }
}

void prefetch_filter_tile(const WinogradWeights& weights, Range rows, Range channels, int part,
                          int parts) {
  constexpr std::int64_t line = 16;
  const bool by_row = weights.out_stride > weights.in_stride;
  const auto& outer = by_row ? rows : channels;
  const auto& inner = by_row ? channels : rows;
  const float* first =
      weights.data + rows.begin * weights.out_stride + channels.begin * weights.in_stride;
  const auto stride = std::max(weights.out_stride, weights.in_stride);
  const auto floats = inner.size() * std::min(weights.out_stride, weights.in_stride);
  for (auto i = outer.size() * part / parts; i < outer.size() * (part + 1) / parts; ++i) {
    for (std::int64_t at = 0; at < floats; at += line) hwy::Prefetch(first + i * stride + at);
  }
}

}  // namespace triptych::cpu
