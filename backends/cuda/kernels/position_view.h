// Positions of a convolution as the products of Hopper see them: the boxes of positions, and the
// images that the copy engine reads for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "backends/cuda/kernels/hopper.cuh"
#include "core/base/checked_math.h"
#include "core/ops/conv_geometry.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// 2^width x 2^height pixels of 2^images images.
struct PixelBox {
  int width = 0, height = 0, images = 0;  ///< powers of two

  int size(int power) const { return 1 << power; }
  std::int64_t across(std::int64_t pixels) const { return ceil_div(pixels, size(width)); }
  std::int64_t down(std::int64_t pixels) const { return ceil_div(pixels, size(height)); }
  std::int64_t deep(std::int64_t count) const { return ceil_div(count, size(images)); }
};

/// The box of so many pixels, a power of two and at least 2^least wide, that covers the images with
/// the fewest copies. None where no box lies inside of them. The copy engine takes up to 256 pixels
/// along an axis.
inline std::optional<PixelBox> pixel_box(int pixels, int least, std::int64_t width,
                                         std::int64_t height, std::int64_t images) {
  constexpr int kMost = 8;
  const int power = std::countr_zero(static_cast<unsigned>(pixels));
  std::optional<PixelBox> best;
  std::int64_t fewest = 0;
  for (int x = std::min(power, kMost); x >= least; --x) {
    for (int y = std::min(power - x, kMost); y >= 0; --y) {
      const PixelBox box = {x, y, power - x - y};
      if (box.images > kMost) continue;
      if (box.size(x) > width || box.size(y) > height || box.size(box.images) > images) continue;
      const auto count = box.across(width) * box.down(height) * box.deep(images);
      if (best && count >= fewest) continue;
      best = box;
      fewest = count;
    }
  }
  return best;
}

/// True where a box of positions reads boxes of pixels: with stride 1, or where patches are tiles.
inline bool has_views(const Window& w) {
  return (w.stride[0] == 1 && w.stride[1] == 1) || w.makes_tiles();
}

/// Images [images, height, width] of positions, and the images that their taps read. Where patches
/// are disjoint tiles, a row of positions counts as an image, and so does the row of patches that
/// it reads. The columns of a patch are then further channels. So boxes are dense there, too.
struct PositionView {
  std::int64_t width, height, images;
  std::int64_t rows_of_image;  ///< images of a view that one image of the tensor has
  int pixel_step;              ///< pixels and channels of x from a column of taps to the next
  int channel_step;
  std::int64_t x_sizes[4];  ///< the innermost first

  /// The view of a window that has one. `pitch`: of x.
  static PositionView of(const Window& w, std::int64_t images, std::int64_t pitch) {
    if (!w.makes_tiles()) return of_images(w.in, w.out, images, pitch);
    const std::int64_t rows = images * w.out[0];
    return {w.out[1],
            1,
            rows,
            w.out[0],
            0,
            static_cast<int>(pitch),
            {w.kernel[1] * pitch, w.out[1], w.kernel[0], rows}};
  }
  static PositionView of_images(const std::int64_t (&in)[2], const std::int64_t (&out)[2],
                                std::int64_t images, std::int64_t pitch) {
    return {out[1], out[0], images, 1, 1, 0, {pitch, in[1], in[0], images}};
  }

  std::optional<PixelBox> box(int positions, int least) const {
    return pixel_box(positions, least, width, height, images);
  }
  std::int64_t boxes(const PixelBox& box) const {
    return box.across(width) * box.down(height) * box.deep(images);
  }
  /// Boxes of 64 channels of x.
  TensorMap map_of_x(const BFloat16* x, const PixelBox& box) const { return map(x, x_sizes, box); }
  /// The same of a tensor with the channels of the positions.
  TensorMap map_of_positions(const BFloat16* y, std::int64_t pitch, const PixelBox& box) const {
    return map(y, {pitch, width, height, images}, box);
  }

 private:
  static TensorMap map(const BFloat16* data, const std::int64_t (&sizes)[4], const PixelBox& box) {
    constexpr int kChannels = 64;
    return make_tensor_map(
        data, sizes, {kChannels, box.size(box.width), box.size(box.height), box.size(box.images)});
  }
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
