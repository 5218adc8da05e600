// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/conv_stride_one.h"

#include <algorithm>

#include "backends/cpu/tiles/tile_unit.h"

namespace triptych::cpu {

Verdict accepts_on_tiles(const ConvGeometry& g) {
  if (g.groups != 1) return Verdict::no("has several groups");
  const auto& w = g.window;
  if (w.makes_tiles()) return Verdict::yes();
  for (int axis = 0; axis < 2; ++axis) {
    if (w.stride[axis] != 1) return Verdict::no("has another stride than 1");
    if (w.extent(axis) > 1 + w.in[axis] + w.out[axis])
      return Verdict::no("has taps farther apart than its images are wide");
  }
  return Verdict::yes();
}

Verdict worth_on_tiles(const ConvGeometry& g) {
  if (!tile_unit_missing().empty()) return Verdict::no(tile_unit_missing());
  constexpr std::int64_t fewest = 8;
  return std::max(g.in_channels, g.out_channels) >= fewest
             ? Verdict::yes()
             : Verdict::no("fills tiles badly with so few channels");
}

StrideOneConv stride_one_conv(const ConvGeometry& g, bool transposed, std::int64_t w_stride) {
  const auto& w = g.window;
  StrideOneConv conv = {.batch = g.batch,
                        .in_channels = transposed ? g.out_channels : g.in_channels,
                        .out_channels = transposed ? g.in_channels : g.out_channels,
                        .kernel = {w.kernel[0], w.kernel[1]},
                        .dilation = {w.dilation[0], w.dilation[1]},
                        .out_stride = transposed ? g.taps() : w_stride,
                        .in_stride = transposed ? w_stride : g.taps(),
                        .flipped = transposed};
  for (int axis = 0; axis < 2; ++axis) {
    conv.in[axis] = transposed ? w.out[axis] : w.in[axis];
    conv.out[axis] = transposed ? w.in[axis] : w.out[axis];
    conv.pad[axis] = transposed ? w.extent(axis) - 1 - w.pad_begin[axis] : w.pad_begin[axis];
  }
  return conv;
}

StrideOneConv conv_of_tiles(const ConvGeometry& g, bool transposed, std::int64_t w_stride) {
  const auto& w = g.window;
  return {.batch = g.batch,
          .in_channels = transposed ? g.out_channels : g.in_channels * g.taps(),
          .out_channels = transposed ? g.in_channels * g.taps() : g.out_channels,
          .in = {w.out[0], w.out[1]},
          .out = {w.out[0], w.out[1]},
          .out_stride = transposed ? 1 : w_stride,
          .in_stride = transposed ? w_stride : 1};
}

}  // namespace triptych::cpu
