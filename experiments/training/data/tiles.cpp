// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/tiles.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "experiments/training/data/augment.h"

namespace triptych::segmentation {
namespace {

/// Copies a window that starts at (top, left) of a picture of `size`, continued by reflection. Its
/// rows from `first` on are at `from`.
void copy_window(const float* from, Size size, std::int64_t top, std::int64_t left, float* to,
                 Size window, std::int64_t first = 0) {
  for (std::int64_t y = 0; y < window.height; ++y) {
    const float* row = from + (reflect_index(top + y, size.height) - first) * size.width;
    for (std::int64_t x = 0; x < window.width; ++x) {
      to[y * window.width + x] = row[reflect_index(left + x, size.width)];
    }
  }
}

std::int64_t planes(std::span<const float> picture, Size size) {
  const auto count = std::ssize(picture) / std::max<std::int64_t>(size.pixels(), 1);
  if (count < 1 || count * size.pixels() != std::ssize(picture)) {
    throw_invalid("tiles", fmt::format("{} values are no planes of {} x {}", picture.size(),
                                       size.height, size.width));
  }
  return count;
}

}  // namespace

std::vector<TileSpan> cover_axis(std::int64_t size, std::int64_t tile, std::int64_t margin,
                                 std::int64_t unit) {
  const auto stride = unit < 1 ? 0 : (tile - 2 * margin) / unit * unit;
  if (size < 1 || margin < 0 || (stride < 1 && size > tile)) {
    throw_invalid("tiles", fmt::format("{} pixels cannot be covered by tiles of {} with margin {} "
                                       "that start at multiples of {}",
                                       size, tile, margin, unit));
  }
  // In units: the first tile reaches the margin beyond the start, the last one beyond the end.
  const auto first = size <= tile ? -((tile - size) / 2 / unit) : -ceil_div(margin, unit);
  const auto way = size <= tile ? 0 : ceil_div(size + margin - tile - first * unit, unit);
  const auto count = size <= tile ? 1 : 1 + std::max<std::int64_t>(1, ceil_div(way * unit, stride));
  std::vector<TileSpan> spans;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto origin = (first + (count == 1 ? 0 : way * i / (count - 1))) * unit;
    spans.push_back({origin, 0, size});
    if (i == 0) continue;
    // Halfway between the centres of neighbours the distances to their borders are equal.
    auto& before = spans[static_cast<std::size_t>(i - 1)];
    before.end = (before.origin + origin + tile) / 2;
    spans.back().begin = before.end;
  }
  return spans;
}

TileCover::TileCover(Size picture, Size tile, std::int64_t margin, std::int64_t unit)
    : picture_(picture),
      tile_(tile),
      rows_(cover_axis(picture.height, tile.height, margin, unit)),
      columns_(cover_axis(picture.width, tile.width, margin, unit)) {}

std::int64_t TileCover::channels_of(std::span<const float> band, const Band& rows,
                                    std::span<const float> tile) const {
  const auto channels = planes(band, {rows.height, picture_.width});
  if (planes(tile, tile_) != channels) {
    throw_invalid("tiles", "the tile and the picture differ in channels");
  }
  return channels;
}

Band TileCover::needed(std::int64_t row) const {
  const auto origin = rows_[static_cast<std::size_t>(row)].origin;
  const auto top = std::max<std::int64_t>(0, origin);
  return {top, std::min(picture_.height, origin + tile_.height) - top};
}

Band TileCover::owned(std::int64_t row) const {
  const auto& span = rows_[static_cast<std::size_t>(row)];
  return {span.begin, span.end - span.begin};
}

void TileCover::extract(std::int64_t index, const Band& rows, std::span<const float> band,
                        std::span<float> tile) const {
  const auto& row = rows_[static_cast<std::size_t>(index / columns())];
  const auto& column = columns_[static_cast<std::size_t>(index % columns())];
  const auto channels = channels_of(band, rows, tile);
  for (std::int64_t c = 0; c < channels; ++c) {
    copy_window(band.data() + c * rows.height * picture_.width, picture_, row.origin, column.origin,
                tile.data() + c * tile_.pixels(), tile_, rows.top);
  }
}

void TileCover::place(std::int64_t index, std::span<const float> tile, const Band& rows,
                      std::span<float> band) const {
  const auto& row = rows_[static_cast<std::size_t>(index / columns())];
  const auto& column = columns_[static_cast<std::size_t>(index % columns())];
  const auto channels = channels_of(band, rows, tile);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (auto y = row.begin; y < row.end; ++y) {
      const float* from = tile.data() + c * tile_.pixels() + (y - row.origin) * tile_.width +
                          (column.begin - column.origin);
      float* to = band.data() + (c * rows.height + y - rows.top) * picture_.width + column.begin;
      std::copy_n(from, column.end - column.begin, to);
    }
  }
}

Size padded_size(Size size, std::int64_t depth) {
  if (depth < 0 || depth > 30) throw_invalid("tiles", "depth is from 0 to 30");
  const auto unit = std::int64_t{1} << depth;
  return {round_up(size.height, unit), round_up(size.width, unit)};
}

std::vector<float> reflect_pad(std::span<const float> picture, Size from, Size to) {
  const auto channels = planes(picture, from);
  std::vector<float> result(static_cast<std::size_t>(channels * to.pixels()));
  for (std::int64_t c = 0; c < channels; ++c) {
    copy_window(picture.data() + c * from.pixels(), from, 0, 0, result.data() + c * to.pixels(),
                to);
  }
  return result;
}

std::vector<float> crop(std::span<const float> picture, Size from, Size to) {
  if (to.height > from.height || to.width > from.width) {
    throw_invalid("tiles", "a crop cannot be larger than the picture");
  }
  return reflect_pad(picture, from, to);
}

}  // namespace triptych::segmentation
