// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/augment.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>

#include "core/base/error.h"
#include "core/base/fnv1a.h"

namespace triptych::segmentation {
namespace {

using ::testing::ElementsAre;
using ::testing::Pointwise;

/// Pixel i of channel c is i + 1000 c. Its label i % 251.
Sample numbered(std::int64_t height, std::int64_t width, std::int64_t channels = 1) {
  Sample sample{"numbered", "", channels, height, width, {}, {}};
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t i = 0; i < height * width; ++i) {
      sample.image.push_back(static_cast<float>(i + 1000 * c));
    }
  }
  for (std::int64_t i = 0; i < height * width; ++i) {
    sample.labels.push_back(static_cast<std::uint8_t>(i % 251));
  }
  return sample;
}

AugmentOptions plain(std::int64_t height, std::int64_t width) {
  return {.height = height,
          .width = width,
          .random_crop = false,
          .flip_x = false,
          .flip_y = false,
          .transpose = false};
}

Sample patch_of(const Sample& sample, const AugmentOptions& options, std::uint64_t stream = 0) {
  RandomStream random(7, stream);
  return augment(sample, options, random);
}

/// All distinct patches over many streams.
std::set<std::vector<float>> all_patches(const Sample& sample, const AugmentOptions& options) {
  std::set<std::vector<float>> patches;
  for (std::uint64_t stream = 0; stream < 200; ++stream) {
    patches.insert(patch_of(sample, options, stream).image);
  }
  return patches;
}

TEST(ReflectIndex, mirrors_without_repeating_the_ends) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = -4; i < 8; ++i) indices.push_back(reflect_index(i, 3));
  EXPECT_THAT(indices, ElementsAre(0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1));
  EXPECT_EQ(reflect_index(-17, 1), 0);
}

TEST(Augment, with_everything_off_a_full_crop_is_the_sample) {
  const auto sample = numbered(5, 7, 3);
  const auto patch = patch_of(sample, plain(5, 7));
  EXPECT_EQ(patch.image, sample.image);
  EXPECT_EQ(patch.labels, sample.labels);
}

TEST(Augment, smaller_samples_are_continued_by_reflection) {
  EXPECT_THAT(patch_of(numbered(1, 3), plain(1, 7)).image, ElementsAre(2, 1, 0, 1, 2, 1, 0));
}

TEST(Augment, crops_reach_every_corner_and_nothing_else) {
  auto options = plain(2, 2);
  options.random_crop = true;
  const auto patches = all_patches(numbered(3, 4), options);
  EXPECT_EQ(patches.size(), 6u);
  EXPECT_TRUE(patches.contains({0, 1, 4, 5}));
  EXPECT_TRUE(patches.contains({6, 7, 10, 11}));
}

TEST(Augment, flips_and_transposition_give_the_eight_symmetries) {
  const auto sample = numbered(2, 2);
  auto options = plain(2, 2);
  options.flip_x = true;
  EXPECT_EQ(all_patches(sample, options),
            (std::set<std::vector<float>>{{0, 1, 2, 3}, {1, 0, 3, 2}}));
  options = plain(2, 2);
  options.flip_y = true;
  EXPECT_EQ(all_patches(sample, options),
            (std::set<std::vector<float>>{{0, 1, 2, 3}, {2, 3, 0, 1}}));
  options = plain(2, 2);
  options.transpose = true;
  EXPECT_EQ(all_patches(sample, options),
            (std::set<std::vector<float>>{{0, 1, 2, 3}, {0, 2, 1, 3}}));
  options.flip_x = options.flip_y = true;
  EXPECT_EQ(all_patches(sample, options).size(), 8u);
}

TEST(Augment, a_patch_that_is_not_square_can_be_transposed) {
  auto options = plain(2, 3);
  options.transpose = true;
  const auto patches = all_patches(numbered(3, 3), options);
  EXPECT_EQ(patches, (std::set<std::vector<float>>{{0, 1, 2, 3, 4, 5}, {0, 3, 6, 1, 4, 7}}));
}

TEST(Augment, labels_move_with_their_pixels) {
  AugmentOptions options{.height = 9, .width = 6};
  for (std::uint64_t stream = 0; stream < 50; ++stream) {
    const auto patch = patch_of(numbered(11, 20, 2), options, stream);
    for (std::size_t i = 0; i < patch.labels.size(); ++i) {
      EXPECT_EQ(static_cast<float>(patch.labels[i]), patch.image[i]);
      EXPECT_EQ(patch.image[i] + 1000, patch.image[patch.labels.size() + i]);
    }
  }
}

TEST(Augment, is_a_function_of_seed_and_stream) {
  AugmentOptions options{
      .height = 16, .width = 16, .max_rotation_degrees = 180, .elastic_sigma = 3};
  const auto sample = numbered(15, 16);
  const auto first = patch_of(sample, options, 3), again = patch_of(sample, options, 3);
  EXPECT_EQ(first.image, again.image);
  EXPECT_EQ(first.labels, again.labels);
  EXPECT_NE(first.image, patch_of(sample, options, 4).image);
}

TEST(Augment, switching_one_off_leaves_the_others) {
  AugmentOptions options{.height = 8, .width = 8};
  const auto with = patch_of(numbered(15, 15), options, 5);
  options.elastic_sigma = 1e-9F;
  const auto deformed = patch_of(numbered(15, 15), options, 5);
  EXPECT_THAT(deformed.image, Pointwise(::testing::FloatNear(1e-4F), with.image));
}

TEST(Augment, a_flip_that_is_off_draws_its_number_all_the_same) {
  const auto sample = numbered(15, 15);
  const AugmentOptions all{.height = 4, .width = 4};
  auto off = all;
  off.flip_y = false;
  off.transpose = false;
  int equal = 0;
  for (std::uint64_t stream = 0; stream < 200; ++stream) {
    auto with = patch_of(sample, all, stream).image, without = patch_of(sample, off, stream).image;
    equal += with == without;
    std::ranges::sort(with);
    std::ranges::sort(without);
    EXPECT_EQ(with, without) << "another crop";
  }
  // One in four draws neither. Six standard deviations.
  EXPECT_NEAR(equal, 50, 37);
}

TEST(Augment, a_displacement_at_a_node_is_the_number_drawn_for_it) {
  Sample ramp{"ramp", "", 1, 1, 512, {}, {}};
  for (int i = 0; i < 512; ++i) ramp.image.push_back(static_cast<float>(i));
  ramp.labels.resize(512);
  auto options = plain(1, 101);
  options.elastic_sigma = 10;
  const auto patch = patch_of(ramp, options).image;
  RandomStream random(7, 0);
  for (int draws = 0; draws < 6; ++draws) random.uniform();  // three coins, a corner, an angle
  for (const std::size_t node : {0u, 50u, 100u}) {
    random.normal();
    EXPECT_NEAR(patch[node], 205 + static_cast<double>(node) + 10.0 * random.normal(), 1e-3);
  }
}

/// Root of the mean squared difference from the undisturbed ramp with slope 1 along x.
double mean_displacement(float sigma) {
  Sample ramp{"ramp", "", 1, 256, 256, {}, {}};
  for (int i = 0; i < 256 * 256; ++i) ramp.image.push_back(static_cast<float>(i % 256));
  ramp.labels.resize(ramp.image.size());
  auto options = plain(64, 64);
  options.elastic_sigma = sigma;
  double sum = 0;
  for (std::uint64_t stream = 0; stream < 100; ++stream) {
    const auto patch = patch_of(ramp, options, stream);
    for (std::size_t i = 0; i < patch.image.size(); ++i) {
      sum += std::pow(patch.image[i] - static_cast<double>(96 + i % 64), 2);
    }
  }
  return std::sqrt(sum / (100 * 64 * 64));
}

TEST(Augment, elastic_displacements_have_the_asked_size) {
  // Between the nodes the interpolation of independent displacements averages them.
  EXPECT_GT(mean_displacement(10), 5);
  EXPECT_LT(mean_displacement(10), 11);
  EXPECT_NEAR(mean_displacement(5) / mean_displacement(10), 0.5, 1e-3);
}

TEST(Augment, elastic_deformation_is_smooth) {
  Sample ramp{"ramp", "", 1, 1, 512, {}, {}};
  for (int i = 0; i < 512; ++i) ramp.image.push_back(static_cast<float>(i));
  ramp.labels.resize(512);
  auto options = plain(1, 128);
  options.elastic_sigma = 10;
  const auto patch = patch_of(ramp, options, 1).image;
  for (std::size_t i = 1; i < patch.size(); ++i) EXPECT_LT(std::abs(patch[i] - patch[i - 1]), 3);
}

TEST(Augment, rotation_keeps_the_distance_from_the_centre) {
  Sample cone{"cone", "", 1, 65, 65, {}, {}};
  for (int i = 0; i < 65 * 65; ++i) {
    cone.image.push_back(
        std::hypot(static_cast<float>(i / 65 - 32), static_cast<float>(i % 65 - 32)));
  }
  cone.labels.resize(cone.image.size());
  auto options = plain(33, 33);
  const auto still = patch_of(cone, options).image;
  options.max_rotation_degrees = 180;
  for (std::uint64_t stream = 0; stream < 20; ++stream) {
    const auto turned = patch_of(cone, options, stream).image;
    EXPECT_THAT(turned, Pointwise(::testing::FloatNear(0.5F), still));
  }
  auto ramp = numbered(65, 65);
  EXPECT_EQ(all_patches(ramp, options).size(), 200u);
}

TEST(Augment, zoom_changes_the_slope_of_some_patches_about_their_centre) {
  Sample ramp{"ramp", "", 1, 1, 512, {}, std::vector<std::uint8_t>(512)};
  for (int i = 0; i < 512; ++i) ramp.image.push_back(static_cast<float>(i));
  auto options = plain(1, 101);
  options.zoom = true;
  int enlarged = 0, reduced = 0;
  for (std::uint64_t stream = 0; stream < 200; ++stream) {
    const auto patch = patch_of(ramp, options, stream).image;
    EXPECT_NEAR(patch[50], 255, 1e-3);
    const float slope = (patch[100] - patch[0]) / 100;
    EXPECT_GT(slope, 0.699F);
    EXPECT_LT(slope, 1.401F);
    enlarged += slope < 1;
    reduced += slope > 1;
  }
  EXPECT_NEAR(enlarged, 20, 20);
  EXPECT_NEAR(reduced, 20, 20);
}

TEST(Augment, intensity_changes_leave_place_and_labels) {
  auto sample = numbered(20, 20);
  AugmentOptions options{
      .height = 8, .width = 8, .max_rotation_degrees = 180, .elastic_sigma = 2, .zoom = true};
  auto strong = options;
  strong.intensity = {
      .blur = true, .brightness = true, .contrast = true, .gamma = true, .noise = true};
  int changed = 0;
  for (std::uint64_t stream = 0; stream < 40; ++stream) {
    const auto with = patch_of(sample, strong, stream), without = patch_of(sample, options, stream);
    EXPECT_EQ(with.labels, without.labels);
    changed += with.image != without.image;
  }
  EXPECT_GT(changed, 10);
}

TEST(Augment, refuses_options_without_sense) {
  EXPECT_THROW(validate({.height = 0}), InvalidArgument);
  EXPECT_THROW(validate({.max_rotation_degrees = 181}), InvalidArgument);
  EXPECT_THROW(validate({.elastic_sigma = NAN}), InvalidArgument);
  EXPECT_THROW(validate({.elastic_grid = 1}), InvalidArgument);
}

TEST(Augment, warped_patches_have_the_same_bits_everywhere) {
  auto options = plain(40, 24);
  options.flip_x = options.flip_y = options.transpose = options.random_crop = options.zoom = true;
  options.max_rotation_degrees = 180;
  options.elastic_sigma = 3;
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t stream = 0; stream < 40; ++stream) {
    const auto patch = patch_of(numbered(50, 60, 2), options, stream);
    hashes.push_back(fnv1a(std::as_bytes(std::span(patch.image))));
    hashes.push_back(fnv1a(std::as_bytes(std::span(patch.labels))));
  }
  EXPECT_EQ(fnv1a(std::as_bytes(std::span(hashes))), 122607014498911835u);
}

}  // namespace
}  // namespace triptych::segmentation
