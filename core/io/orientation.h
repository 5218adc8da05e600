// Orientation of a picture as EXIF states it: 1 as stored, 2 to 8 mirrored or turned.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace triptych {

inline constexpr int kAsStored = 1;

/// The orientation in an EXIF block (a small TIFF), or kAsStored.
int exif_orientation(std::span<const std::byte> block);

/// The orientation in the EXIF segment of a whole JPEG file.
int jpeg_orientation(std::span<const std::byte> file);

/// True when width and height change places.
constexpr bool swaps_sides(int orientation) { return orientation >= 5; }

struct PixelPlace {
  std::int64_t x = 0;
  std::int64_t y = 0;
};

/// Where the pixel that viewers show at `shown` is stored in a picture of `width` x `height` stored
/// pixels.
PixelPlace stored_place(int orientation, PixelPlace shown, std::int64_t width, std::int64_t height);

/// "turned by 180 degrees".
std::string_view describe_orientation(int orientation);

}  // namespace triptych
