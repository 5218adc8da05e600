// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/tiles.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/base/error.h"

namespace triptych::segmentation {
namespace {

using ::testing::ElementsAre;

std::vector<float> numbered(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST(CoverAxis, every_pixel_is_owned_once_by_the_tile_it_lies_deepest_in) {
  for (std::int64_t size = 1; size <= 200; ++size) {
    for (const auto& [tile, margin, unit] : {std::tuple{32, 8, 1},
                                             {33, 5, 1},
                                             {16, 0, 1},
                                             {64, 31, 1},
                                             {32, 8, 8},
                                             {40, 11, 8},
                                             {64, 24, 16},
                                             {64, 5, 16}}) {
      const auto spans = cover_axis(size, tile, margin, unit);
      std::int64_t next = 0;
      for (const auto& span : spans) {
        EXPECT_EQ(span.begin, next);
        EXPECT_EQ(span.origin % unit, 0);
        next = span.end;
        for (auto p = span.begin; p < span.end; ++p) {
          const auto depth = [&, t = tile](const TileSpan& other) {
            return std::min(p - other.origin, other.origin + t - 1 - p);
          };
          if (spans.size() > 1) {
            EXPECT_GE(depth(span), margin);
          }
          for (const auto& other : spans) EXPECT_GE(depth(span), depth(other));
        }
      }
      EXPECT_EQ(next, size);
      const auto stride = (tile - 2 * margin) / unit * unit;
      EXPECT_LE(std::ssize(spans), size <= tile ? 1 : (size + stride - 1) / stride + 1);
      if (unit == 1) {
        EXPECT_EQ(std::ssize(spans), size <= tile ? 1 : (size + stride - 1) / stride);
      }
    }
  }
}

TEST(CoverAxis, refuses_margins_that_leave_less_than_a_step) {
  EXPECT_THROW(cover_axis(17, 16, 5, 8), InvalidArgument);
  EXPECT_EQ(cover_axis(17, 16, 4, 8).size(), 3U);
  EXPECT_THROW(cover_axis(17, 16, 8, 1), InvalidArgument);
  EXPECT_THROW(cover_axis(10, 16, -1, 1), InvalidArgument);
  EXPECT_THROW(cover_axis(0, 16, 1, 1), InvalidArgument);
}

/// A thin picture's tile has a short side, too short for the margins of the long one.
TEST(CoverAxis, a_side_that_fits_is_one_tile_whatever_the_margin) {
  for (const std::int64_t size : {1, 100, 104}) {
    const auto spans = cover_axis(size, 104, 64, 8);
    ASSERT_EQ(spans.size(), 1);
    EXPECT_EQ(spans[0].begin, 0);
    EXPECT_EQ(spans[0].end, size);
    EXPECT_EQ(spans[0].origin, -((104 - size) / 2 / 8 * 8));
  }
  EXPECT_EQ(TileCover({100, 1000}, {104, 256}, 64, 8).count(), 8);
}

TEST(TileCover, tiles_put_together_are_the_picture_for_every_size) {
  constexpr Size kTile{48, 40};
  for (std::int64_t height = 1; height <= 200; height += 7) {
    for (std::int64_t width = 1; width <= 200; width += 7) {
      const Size size{height, width};
      const auto picture = numbered(2 * size.pixels());
      std::vector<float> result(picture.size(), -1);
      std::vector<float> tile(2 * kTile.pixels());
      const TileCover cover(size, kTile, 12, 8);
      for (std::int64_t i = 0; i < cover.count(); ++i) {
        cover.extract(i, picture, tile);
        cover.place(i, tile, result);
      }
      ASSERT_EQ(result, picture) << height << " x " << width;
    }
  }
}

TEST(TileCover, margins_beyond_the_picture_are_reflected) {
  const TileCover cover({1, 3}, {1, 7}, 0, 1);
  std::vector<float> tile(7);
  cover.extract(0, numbered(3), tile);
  EXPECT_THAT(tile, ElementsAre(2, 1, 0, 1, 2, 1, 0));
}

TEST(TileCover, input_and_output_may_differ_in_channels) {
  const TileCover cover({4, 4}, {4, 4}, 0, 1);
  std::vector<float> result(3 * 16);
  cover.place(0, numbered(3 * 16), result);
  EXPECT_EQ(result, numbered(3 * 16));
  EXPECT_THROW(cover.place(0, numbered(16), result), InvalidArgument);
  EXPECT_THROW(cover.place(0, numbered(17), result), InvalidArgument);
}

TEST(ReflectPad, pads_to_the_next_multiple_and_crops_back) {
  EXPECT_EQ(padded_size({5, 8}, 2), (Size{8, 8}));
  EXPECT_EQ(padded_size({5, 8}, 0), (Size{5, 8}));
  EXPECT_THROW(padded_size({5, 8}, 31), InvalidArgument);
  const auto padded = reflect_pad(numbered(6), {1, 3}, {1, 4});
  EXPECT_THAT(padded, ElementsAre(0, 1, 2, 1, 3, 4, 5, 4));
  EXPECT_EQ(crop(padded, {1, 4}, {1, 3}), numbered(6));
  EXPECT_THROW(crop(padded, {1, 4}, {1, 5}), InvalidArgument);
}

}  // namespace
}  // namespace triptych::segmentation
