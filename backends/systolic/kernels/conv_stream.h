// What convolution and the gradient of its weights share: the stream of patches of x.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/systolic/lowering/stream_plan.h"
#include "core/ops/conv_geometry.h"

namespace triptych::systolic {

inline StreamAxis conv_axis(const Window& w, int axis) {
  return {.in = w.in[axis],
          .out = w.out[axis],
          .taps = w.kernel[axis],
          .stride = w.stride[axis],
          .first = -w.pad_begin[axis],
          .step = w.dilation[axis]};
}

/// The patches of one group of x as a stream; `padded` channels are stored in groups of `group`.
inline StreamProblem conv_problem(const ConvGeometry& g, std::int64_t padded, std::int64_t group,
                                  bool transpose) {
  return flattened({.transpose = transpose,
                    .images = g.batch,
                    .y = conv_axis(g.window, 0),
                    .x = conv_axis(g.window, 1),
                    .channels = padded,
                    .group = group,
                    .columns = g.group_out()});
}

/// Group `index` of x [N, C, (H,) W], input 0 of the node.
inline ImagePacking conv_image(const ConvGeometry& g, std::int64_t image_stride,
                               std::int64_t padded, std::int64_t index) {
  return {.input = 0,
          .offset = index * g.group_in() * g.in_plane(),
          .image_stride = image_stride,
          .channel_stride = g.in_plane(),
          .images = g.batch,
          .positions = g.in_plane(),
          .channels = g.group_in(),
          .padded = padded};
}

}  // namespace triptych::systolic
