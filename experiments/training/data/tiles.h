// Overlap tiles: a picture of any size through a network of one input size (Ronneberger et al.,
// 2015). Tiles reach `margin` pixels beyond the part that is used and beyond the picture, which is
// continued by reflection. Each pixel of the result comes from the one tile that has it farthest
// from the border. Tiles start at multiples of `unit`, the network's step, so that its pooling
// meets the pixels as in the whole picture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace triptych::segmentation {

struct Size {
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t pixels() const { return height * width; }
  bool operator==(const Size&) const = default;
};

/// One tile along one axis: it starts at pixel `origin`, perhaps negative, and owns [begin, end).
struct TileSpan {
  std::int64_t origin = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Covers `size` pixels by the fewest tiles, evenly spread. If they fit into one, they are near its
/// middle. All start at multiples of `unit`. Throws InvalidArgument when the pixels do not fit into
/// one tile and the margins leave less than `unit` of it.
std::vector<TileSpan> cover_axis(std::int64_t size, std::int64_t tile, std::int64_t margin,
                                 std::int64_t unit);

/// Whole rows of a picture, from `top` on.
struct Band {
  std::int64_t top = 0;
  std::int64_t height = 0;
};

class TileCover {
 public:
  TileCover(Size picture, Size tile, std::int64_t margin, std::int64_t unit);

  std::int64_t count() const { return std::ssize(rows_) * std::ssize(columns_); }
  /// Tiles of row r are r * columns() to (r + 1) * columns() - 1.
  std::int64_t rows() const { return std::ssize(rows_); }
  std::int64_t columns() const { return std::ssize(columns_); }
  /// Rows of the picture that tiles of row `row` are made of, and those that they own.
  Band needed(std::int64_t row) const;
  Band owned(std::int64_t row) const;
  /// Copies tile `index` of `band` [channels, its height, picture width], which contains its
  /// pixels, to `tile` [channels, tile size].
  void extract(std::int64_t index, const Band& rows, std::span<const float> band,
               std::span<float> tile) const;
  /// Copies the part that `index` owns from `tile` [channels, tile size] to `band` [channels, its
  /// height, picture width]. The channels are those of the network's output.
  void place(std::int64_t index, std::span<const float> tile, const Band& rows,
             std::span<float> band) const;
  /// The same of the whole picture.
  void extract(std::int64_t index, std::span<const float> picture, std::span<float> tile) const {
    extract(index, {0, picture_.height}, picture, tile);
  }
  void place(std::int64_t index, std::span<const float> tile, std::span<float> result) const {
    place(index, tile, {0, picture_.height}, result);
  }

 private:
  std::int64_t channels_of(std::span<const float> band, const Band& rows,
                           std::span<const float> tile) const;

  Size picture_, tile_;
  std::vector<TileSpan> rows_, columns_;
};

/// The smallest size not below `size` with sides divisible by 2^depth.
Size padded_size(Size size, std::int64_t depth);

/// `picture` [channels, from] continued by reflection at the bottom and right to [channels, to].
std::vector<float> reflect_pad(std::span<const float> picture, Size from, Size to);

/// The top left corner [channels, to] of `picture` [channels, from].
std::vector<float> crop(std::span<const float> picture, Size from, Size to);

}  // namespace triptych::segmentation
