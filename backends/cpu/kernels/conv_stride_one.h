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
  std::int64_t pad[2] = {0, 0};                ///< before the first row and column; may be negative
  std::int64_t out_stride = 0, in_stride = 0;  ///< of the weights, along those channels
  bool flipped = false;                        ///< taps run backwards
  bool relu = false;

  std::int64_t taps() const { return kernel[0] * kernel[1]; }
};

/// Geometry of a Conv or a ConvTranspose; that of the latter is the convolution whose input
/// gradient it is.
ConvGeometry geometry_of_either(const KernelQuery& query);

/// Wants a stride of 1.
StrideOneConv stride_one_conv(const KernelQuery& query);

}  // namespace triptych::cpu
