// Between the project's tensors and those that libraries want: channels innermost, operands rounded
// to bfloat16. Each build of the kernels (platform.h) has its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/runtime/device.h"

namespace triptych::cuda {

/// Images, or weights: [images, channels, plane] with `stride` elements from image to image. Packed
/// they are [images, plane, channels] and dense.
struct ImageBlock {
  std::int64_t images = 1, channels = 1, plane = 1;
  std::int64_t stride = 0;

  std::int64_t elements() const { return images * channels * plane; }
  /// Elements from the first to behind the last, gaps included.
  std::int64_t span() const { return (images - 1) * stride + channels * plane; }
};

/// A value per channel that is added (may be nullptr), and a cut at 0, in this order.
struct ChannelFinish {
  const float* bias = nullptr;
  bool relu = false;
};

/// Positions whose channels lie together, `pitch` elements from a position to the next.
struct PositionRows {
  std::int64_t count = 0, channels = 1;
  std::int64_t pitch = 1;
};

/// The functions of one build.
struct Repacking {
  /// x as the block lies, y packed. They do not overlap. `round`: to bfloat16, kept in float32.
  void (*pack)(Stream* stream, const float* x, float* y, const ImageBlock& block, bool round);
  /// x packed, y as the block lies.
  void (*unpack)(Stream* stream, const float* x, float* y, const ImageBlock& block,
                 const ChannelFinish& finish);
  /// In place, on a block as it lies.
  void (*finish)(Stream* stream, float* y, const ImageBlock& block, const ChannelFinish& finish);
  /// As pack and unpack, with the packed elements in bfloat16.
  void (*pack_bf16)(Stream* stream, const float* x, void* y, const ImageBlock& block);
  void (*unpack_bf16)(Stream* stream, const void* x, float* y, const ImageBlock& block,
                      const ChannelFinish& finish);
  /// bfloat16 to bfloat16: x dense, y with the pitch of the rows. Multiples of eight channels.
  void (*place_bf16)(Stream* stream, const void* x, void* y, const PositionRows& rows,
                     const ChannelFinish& finish);
  /// float32 to bfloat16, one after another.
  void (*round)(Stream* stream, const float* x, void* y, std::int64_t elements);
};

namespace gpu {
const Repacking& repacking();
}
namespace emulated {
const Repacking& repacking();
}
namespace counted {
const Repacking& repacking();
}

}  // namespace triptych::cuda
