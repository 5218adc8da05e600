// Operands of products on the tensor cores: float32 tensors rounded to bfloat16 once, in the layout
// that the products read: rows that begin at multiples of 16 bytes, padded with zeros. Each moves
// every byte once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/conv_taps.cuh"
#include "core/base/float16.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Elements that rows are whole in.
inline constexpr std::int64_t kPieceElements = 8;
inline std::int64_t padded(std::int64_t elements) {
  return (elements + kPieceElements - 1) / kPieceElements * kPieceElements;
}

/// kernel_entry of a kernel K with `static ChannelsLastOperands channels_last(const KernelQuery&)`.
template <class K>
KernelEntry channels_last_entry(std::string_view op, std::string_view name) {
  auto entry = kernel_entry<K>(op, name);
  entry.channels_last = &K::channels_last;
  return entry;
}

/// y[row, padded(columns)] = x[row, columns].
void round_rows(Stream* stream, Global<const float> x, Global<BFloat16> y, std::int64_t rows,
                std::int64_t columns);

/// Images [N, groups * channels, positions] become [N, positions, groups * padded(channels)]. (A
/// matrix [k, m] is an image of k channels.)
struct ImageRounding {
  Global<const float> x;
  Global<BFloat16> y;
  std::int64_t images = 1, image_stride = 0;  ///< elements of x from one to the next
  std::int64_t groups = 1, channels = 1, positions = 1;

  std::int64_t pitch() const { return groups * padded(channels); }
  std::int64_t y_elements() const { return images * positions * pitch(); }
};
void round_images(Stream* stream, const ImageRounding& rounding);

/// Weights become rows of y: y[group, row, tap, padded(channels)].
struct WeightRounding {
  Global<const float> w;
  Global<BFloat16> y;
  std::int64_t groups = 1, rows = 1, channels = 1;
  std::int64_t w_group = 0, w_row = 0, w_channel = 0;  ///< elements of w to the next of each
  Global<const Tap> taps;
  std::int64_t tap_count = 1;

  std::int64_t y_elements() const { return groups * rows * tap_count * padded(channels); }
};
void round_weights(Stream* stream, const WeightRounding& rounding);

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
