// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/synthetic.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "experiments/training/data/batcher.h"
#include "experiments/training/data/synthetic_noise.h"
#include "tests/unit/io/test_files.h"

namespace triptych::segmentation {
namespace {

TEST(Synthetic, a_picture_is_a_function_of_seed_and_index) {
  const SyntheticOptions options{.size = {64, 80}, .seed = 5};
  const auto first = make_membranes(options, 2);
  EXPECT_EQ(first.image.samples, make_membranes(options, 2).image.samples);
  EXPECT_NE(first.image.samples, make_membranes(options, 3).image.samples);
  EXPECT_NE(first.image.samples, make_membranes({.size = {64, 80}, .seed = 6}, 2).image.samples);
}

/// Labels of two classes train a network with two outputs: i64, not f32.
TEST(Synthetic, has_the_classes_that_it_is_asked_for) {
  for (const std::int64_t classes : {1, 2}) {
    const auto dataset = synthetic_dataset({.size = {32, 32}, .classes = classes}, 1);
    EXPECT_EQ(dataset.classes, classes);
    BatcherOptions options;
    options.augment.height = options.augment.width = 16;
    const auto batch = Batcher(dataset, normalization_of(dataset), options).draw(0, 2);
    EXPECT_EQ(batch.y.dtype(), classes == 1 ? DType::F32 : DType::I64);
  }
  EXPECT_THROW(synthetic_dataset({.size = {32, 32}, .classes = 3}, 1), InvalidArgument);
}

TEST(Synthetic, looks_like_the_real_tissue_in_numbers) {
  // The real sections: 22 % membrane, mean 126, deviation 44. Membranes are the darker class.
  const auto dataset = synthetic_dataset({.size = {256, 256}, .seed = 1}, 4);
  double membrane = 0, dark = 0, bright = 0;
  for (const auto& sample : dataset.samples) {
    for (std::size_t i = 0; i < sample.labels.size(); ++i) {
      membrane += sample.labels[i];
      (sample.labels[i] == 1 ? dark : bright) += sample.image[i];
    }
  }
  const double pixels = 4 * 256 * 256;
  EXPECT_GT(membrane / pixels, 0.15);
  EXPECT_LT(membrane / pixels, 0.3);
  EXPECT_LT(dark / membrane + 0.15, bright / (pixels - membrane));
  const auto normalization = normalization_of(dataset);
  EXPECT_NEAR(normalization.mean[0] * 255, 126, 20);
  EXPECT_NEAR(normalization.deviation[0] * 255, 44, 10);
}

TEST(Synthetic, every_size_can_be_made) {
  for (const auto& size : {Size{1, 1}, Size{1, 100}, Size{97, 3}, Size{33, 65}}) {
    const auto picture = make_membranes({.size = size, .cell_size = 8}, 0);
    EXPECT_EQ(std::ssize(picture.image.samples), size.pixels());
    EXPECT_EQ(std::ssize(picture.mask.samples), size.pixels());
  }
  EXPECT_THROW(make_membranes({.size = {0, 5}}, 0), InvalidArgument);
  EXPECT_THROW(make_membranes({.size = {5, 100000}}, 0), InvalidArgument);
  EXPECT_THROW(make_membranes({.cell_size = NAN}, 0), InvalidArgument);
}

TEST(Synthetic, a_saved_set_loads_as_the_same_data_set) {
  const test::TemporaryFolder folder;
  const SyntheticOptions options{.size = {40, 56}};
  save_synthetic_dataset(folder.path(), options, 3);
  DatasetOptions from;
  from.images = folder / "images";
  from.masks = folder / "masks";
  from.invert = true;
  const auto loaded = load_dataset(from);
  const auto made = synthetic_dataset(options, 3);
  ASSERT_EQ(loaded.samples.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(loaded.samples[i].name, made.samples[i].name);
    EXPECT_EQ(loaded.samples[i].image, made.samples[i].image);
    EXPECT_EQ(loaded.samples[i].labels, made.samples[i].labels);
  }
}

TEST(SyntheticNoise, blur_keeps_constants_and_spreads_a_point_evenly) {
  EXPECT_THAT(blurred(Field(35, 2.0F), {5, 7}, 1.5), ::testing::Each(::testing::FloatEq(2)));
  Field point(21 * 31, 0.0F);
  point[10 * 31 + 15] = 1;
  const auto spread = blurred(point, {21, 31}, 1);
  EXPECT_FLOAT_EQ(spread[10 * 31 + 16], spread[11 * 31 + 15]);
  EXPECT_NEAR(spread[10 * 31 + 15], 0.1592, 0.001);
}

TEST(SyntheticNoise, smooth_noise_stays_in_range_and_changes_slowly) {
  const auto noise = smooth_noise({50, 60}, 20, RandomStream(1, 2));
  const auto [low, high] = std::ranges::minmax(noise);
  EXPECT_GE(low, -1);
  EXPECT_LE(high, 1);
  EXPECT_GT(high - low, 0.5);
  for (std::size_t i = 1; i < 60; ++i) EXPECT_LT(std::abs(noise[i] - noise[i - 1]), 0.2);
}

}  // namespace
}  // namespace triptych::segmentation
