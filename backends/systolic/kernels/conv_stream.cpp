// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/conv_stream.h"

namespace triptych::systolic {
namespace {

StreamAxis conv_axis(const Window& w, int axis) {
  return {.in = w.in[axis],
          .out = w.out[axis],
          .taps = w.kernel[axis],
          .stride = w.stride[axis],
          .first = -w.pad_begin[axis],
          .step = w.dilation[axis]};
}

/// Makes each tile of x a position of its own.
void fold_tiles(const ConvGeometry& g, PatchStream& stream) {
  const auto& w = g.window;
  stream.problem.y = {.in = w.out[0], .out = w.out[0]};
  stream.problem.x = {.in = w.out[1], .out = w.out[1]};
  stream.problem.channels = g.taps() * g.group_in();
  stream.tap_rows = g.group_in();
  auto& image = stream.image;
  image.padded = stream.problem.channels;
  image.rows = w.out[0];
  image.row_stride = w.stride[0] * w.in[1];
  image.positions = w.out[1];
  image.position_stride = w.stride[1];
  image.taps.clear();
  for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
    image.taps.push_back(tap / w.kernel[1] * w.in[1] + tap % w.kernel[1]);
  }
}

}  // namespace

PatchStream patch_stream(const ConvGeometry& g, std::int64_t image_stride, std::int64_t group,
                         std::int64_t index) {
  PatchStream stream;
  stream.tap_rows = padded_channels(g.group_in(), group);
  stream.problem = {.images = g.batch,
                    .y = conv_axis(g.window, 0),
                    .x = conv_axis(g.window, 1),
                    .channels = stream.tap_rows,
                    .group = group,
                    .columns = g.group_out()};
  auto& image = stream.image;
  image.offset = index * g.group_in() * g.in_plane();
  image.image_stride = image_stride;
  image.channel_stride = image.positions = g.in_plane();
  image.images = g.batch;
  image.channels = g.group_in();
  image.padded = stream.tap_rows;
  if (g.window.makes_tiles() && g.taps() * g.group_in() % group == 0) fold_tiles(g, stream);
  stream.problem = flattened(stream.problem);
  return stream;
}

}  // namespace triptych::systolic
