// Convolutions of stride 1 as Conv and ConvTranspose see them: the second is the gradient of the
// input of the first, which is a convolution with taps that run backwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/conv_geometry.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

struct StrideOneConv {
  std::int64_t batch = 1, in_channels = 1, out_channels = 1;
  std::int64_t in[2] = {1, 1}, out[2] = {1, 1};
  std::int64_t kernel[2] = {1, 1}, dilation[2] = {1, 1};
  std::int64_t pad[2] = {0, 0};                ///< before the first row and column, may be negative
  std::int64_t out_stride = 0, in_stride = 0;  ///< of the weights, along those channels
  bool flipped = false;                        ///< taps run backwards

  std::int64_t taps() const { return kernel[0] * kernel[1]; }
  /// Columns of a padded row, and additional rows of the input for one output row.
  std::int64_t pitch() const { return out[1] + (kernel[1] - 1) * dilation[1]; }
  std::int64_t halo() const { return (kernel[0] - 1) * dilation[0]; }
};

/// Convolutions and gradients of weights that the tile unit takes: one group, a stride of 1 or
/// windows that tile the larger image, and taps within the size of the images.
Verdict accepts_on_tiles(const ConvGeometry& g);
/// Whether the tile unit is there, and has enough channels to pay.
Verdict worth_on_tiles(const ConvGeometry& g);

/// Wants a stride of 1. `g` of a transposed convolution is the convolution that has it as input
/// gradient. `w_stride`: elements from one index of the weights' first axis to the next.
StrideOneConv stride_one_conv(const ConvGeometry& g, bool transposed, std::int64_t w_stride);

/// The same where the windows tile the larger image: each tap of one of its channels is a channel
/// of its own, of the size of the smaller image.
StrideOneConv conv_of_tiles(const ConvGeometry& g, bool transposed, std::int64_t w_stride);

}  // namespace triptych::cpu
