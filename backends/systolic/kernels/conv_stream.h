// Common part of convolution and the gradient of its weights: the stream of patches of x.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/systolic/lowering/stream_plan.h"
#include "core/ops/conv_geometry.h"

namespace triptych::systolic {

/// The patches of one group of x as a stream, and its image.
struct PatchStream {
  StreamProblem problem;
  ImagePacking image;
  std::int64_t tap_rows = 1;  ///< values of one tap, padding included
};

/// Group `index` of x [N, C, (H,) W], input 0 of the node, channels stored in groups of `group`.
/// Tiles are stored as positions with (tap, channel) as channels: a tile then takes as few rows of
/// the buffer as it can fill, even if x has few channels.
PatchStream patch_stream(const ConvGeometry& geometry, std::int64_t image_stride,
                         std::int64_t group, std::int64_t index);

}  // namespace triptych::systolic
