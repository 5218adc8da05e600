// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/intensity.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "core/base/fnv1a.h"

namespace triptych::segmentation {
namespace {

using ::testing::Each;
using ::testing::FloatNear;
using ::testing::Pointwise;

const IntensityOptions kAll = {
    .blur = true, .brightness = true, .contrast = true, .gamma = true, .noise = true};

/// Values from 0.25 to 0.75, another in each pixel and channel.
Sample ramp(std::int64_t height, std::int64_t width, std::int64_t channels = 1) {
  Sample sample{"ramp", "", channels, height, width, {}, {}};
  const auto size = channels * height * width;
  for (std::int64_t i = 0; i < size; ++i)
    sample.image.push_back(0.25F + 0.5F * static_cast<float>(i) / static_cast<float>(size - 1));
  return sample;
}

Sample changed(Sample sample, const IntensityOptions& options, std::uint64_t stream) {
  RandomStream random(7, stream);
  change_intensity(sample, options, random);
  return sample;
}

/// The images of 200 streams that are not `sample`'s.
std::vector<std::vector<float>> changes_of(const Sample& sample, const IntensityOptions& options) {
  std::vector<std::vector<float>> images;
  for (std::uint64_t stream = 0; stream < 200; ++stream) {
    auto image = changed(sample, options, stream).image;
    if (image != sample.image) images.push_back(std::move(image));
  }
  return images;
}

double mean_of(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += std::pow(double{value} - mean_of(values), 2);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(Intensity, with_everything_off_nothing_changes) {
  EXPECT_TRUE(changes_of(ramp(5, 7, 3), {}).empty());
}

TEST(Intensity, every_switch_draws_its_numbers_whether_on_or_off) {
  RandomStream off(7, 1), on(7, 1);
  auto first = ramp(8, 8), second = first;
  change_intensity(first, {}, off);
  change_intensity(second, kAll, on);
  EXPECT_EQ(off.bits(), on.bits());
}

TEST(Intensity, brightness_multiplies_some_patches_by_one_factor) {
  const auto sample = ramp(4, 4, 2);
  const auto images = changes_of(sample, {.brightness = true});
  EXPECT_NEAR(std::ssize(images), 30, 30);  // six standard deviations of a binomial count
  for (const auto& image : images) {
    const float factor = image[0] / sample.image[0];
    EXPECT_GE(factor, 0.699F);
    EXPECT_LE(factor, 1.301F);
    for (std::size_t i = 0; i < image.size(); ++i)
      EXPECT_FLOAT_EQ(image[i], sample.image[i] * factor);
  }
}

TEST(Intensity, contrast_keeps_the_mean) {
  const auto sample = ramp(4, 4);
  const auto images = changes_of(sample, {.contrast = true});
  EXPECT_GT(images.size(), 5u);
  for (const auto& image : images) {
    EXPECT_NEAR(mean_of(image), 0.5, 1e-6);
    const auto factor = deviation_of(image) / deviation_of(sample.image);
    EXPECT_GE(factor, 0.649);
    EXPECT_LE(factor, 1.501);
  }
}

TEST(Intensity, gamma_keeps_the_range_and_the_order) {
  const auto sample = ramp(4, 8);
  const auto images = changes_of(sample, {.gamma = true});
  EXPECT_GT(images.size(), 20u);
  for (const auto& image : images) {
    EXPECT_TRUE(std::ranges::is_sorted(image));
    EXPECT_FLOAT_EQ(image.front(), 0.25F);
    EXPECT_FLOAT_EQ(image.back(), 0.75F);
    const double middle = (double{image[16]} - 0.25) / 0.5;
    const double power = std::log(middle) / std::log((double{sample.image[16]} - 0.25) / 0.5);
    EXPECT_GE(power, 0.699);
    EXPECT_LE(power, 1.501);
  }
}

TEST(Intensity, blur_keeps_what_is_even_and_spreads_what_is_not) {
  Sample even{"even", "", 2, 9, 5, std::vector<float>(90, 0.5F), {}};
  auto point = even;
  point.image.assign(90, 0);
  point.image[4 * 5 + 2] = 1;
  for (std::uint64_t stream = 0; stream < 50; ++stream) {
    EXPECT_THAT(changed(even, {.blur = true}, stream).image, Each(FloatNear(0.5F, 1e-6F)));
    const auto image = changed(point, {.blur = true}, stream).image;
    auto turned = image;
    std::reverse(turned.begin(), turned.begin() + 45);
    EXPECT_THAT(image, Pointwise(FloatNear(1e-6F), turned));
    EXPECT_THAT(std::span(image).subspan(45), Each(0));  // the other channel
  }
  const auto images = changes_of(point, {.blur = true});
  EXPECT_GT(images.size(), 10u);
  for (const auto& image : images) EXPECT_LT(image[4 * 5 + 2], 0.7F);
}

TEST(Intensity, noise_has_no_mean_and_at_most_a_tenth_of_the_deviation) {
  const auto sample = ramp(64, 64);
  const auto images = changes_of(sample, {.noise = true, .deviation = {0.2F}});
  EXPECT_GT(images.size(), 5u);
  double largest = 0;
  for (auto image : images) {
    std::ranges::transform(image, sample.image, image.begin(), std::minus<>());
    const double deviation = deviation_of(image);
    EXPECT_NEAR(mean_of(image), 0, 6 * deviation / 64);
    largest = std::max(largest, deviation);
  }
  EXPECT_LT(largest, 0.0206);
  EXPECT_GT(largest, 0.01);
}

TEST(Intensity, patches_of_one_value_stay_finite) {
  const Sample black{"black", "", 1, 1, 1, {0}, {}};
  for (std::uint64_t stream = 0; stream < 50; ++stream)
    EXPECT_TRUE(std::isfinite(changed(black, kAll, stream).image[0]));
}

TEST(Intensity, has_the_same_bits_everywhere) {
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t stream = 0; stream < 40; ++stream) {
    const auto image = changed(ramp(17, 23, 3), kAll, stream).image;
    hashes.push_back(fnv1a(std::as_bytes(std::span(image))));
  }
  EXPECT_EQ(fnv1a(std::as_bytes(std::span(hashes))), 12226063171754107821u);
}

TEST(NormalFromBits, has_the_quantiles_of_a_normal_distribution) {
  const auto bits_of_share = [](double share) {
    return static_cast<std::uint32_t>(share * 0x1p24) << 8;
  };
  EXPECT_NEAR(normal_from_bits(bits_of_share(0.5)), 0, 1e-6);
  EXPECT_NEAR(normal_from_bits(bits_of_share(0.975)), 1.959964, 1e-5);
  EXPECT_NEAR(normal_from_bits(bits_of_share(0.0013499)), -3, 1e-4);
  EXPECT_NEAR(normal_from_bits(0), -normal_from_bits(~0U), 1e-6);
  EXPECT_NEAR(normal_from_bits(0), -5.42, 0.01);
  for (std::uint32_t i = 0; i < 1000; ++i)
    EXPECT_LT(normal_from_bits(i << 22), normal_from_bits((i + 1) << 22));
}

}  // namespace
}  // namespace triptych::segmentation
