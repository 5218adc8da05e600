// Boxes of pixels that the copy engine loads as the rows of a tile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "core/base/checked_math.h"

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

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
