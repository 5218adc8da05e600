// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/normalization.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"

namespace triptych::segmentation::normalization_tests {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

Sample sample(std::vector<float> image, std::int64_t channels = 1) {
  return {.channels = channels,
          .height = 1,
          .width = std::ssize(image) / channels,
          .image = std::move(image)};
}

TEST(Normalization, each_channel_has_its_own_numbers) {
  Dataset dataset{.channels = 2,
                  .samples = {sample({0, 2, 100, 300}, 2), sample({4, 6, 100, 300}, 2)}};
  const auto each = normalization_of(dataset);
  EXPECT_THAT(each.mean, ElementsAre(3, 200));
  EXPECT_THAT(each.deviation, ElementsAre(FloatEq(std::sqrt(5.0F)), 100));
  const auto image = normalized(dataset.samples[0], each);
  EXPECT_THAT(std::vector(image.begin() + 2, image.end()), ElementsAre(-1, 1));
  const auto together = normalization_of(dataset, NormalizeChannels::Together);
  EXPECT_THAT(together.mean, ElementsAre(101.5F));
  EXPECT_EQ(together.deviation.size(), 1U);
  EXPECT_FLOAT_EQ(normalized(dataset.samples[0], together)[0], -101.5F / together.deviation[0]);
  dataset.channels = 1;
  EXPECT_THROW(normalization_of(dataset), InvalidArgument);
}

TEST(Normalization, images_of_another_scale_are_named) {
  Dataset dataset{.samples = {sample({0, 1}), sample({5, 6}), sample({0, 40})}};
  dataset.samples[2].name = "c";
  std::string note;
  normalization_of(dataset, NormalizeChannels::Each, &note);
  EXPECT_THAT(note, AllOf(HasSubstr("\"c\" have deviation 20, those of most images 0.5"),
                          HasSubstr("normalize image")));
  dataset.samples[2] = sample({3, 3});
  normalization_of(dataset, NormalizeChannels::Each, &note);
  EXPECT_EQ(note, "") << "a constant image has no scale";
}

TEST(Normalization, an_image_is_brought_to_its_own_scale) {
  auto one = sample({10, 30});
  normalize_by_itself(one);
  EXPECT_THAT(one.image, ElementsAre(-1, 1));
  one.image = {7, 7};
  normalize_by_itself(one);
  EXPECT_THAT(one.image, ElementsAre(0, 0));
  auto two = sample({10, 30, 500, 500}, 2);
  normalize_by_itself(two);
  EXPECT_THAT(two.image, ElementsAre(-1, 1, 0, 0));
  two = sample({10, 30, 500, 500}, 2);
  normalize_by_itself(two, {NormalizeBy::Image, NormalizeChannels::Together});
  EXPECT_LT(two.image[1], 0);
}

TEST(Normalization, percentiles_are_values_of_these_ranks) {
  RandomStream random(5, 0);
  for (const std::int64_t size : {1, 2, 60, 1001}) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < size; ++i) {
      const auto value = random.normal() * 100;
      values.push_back(random.uniform() < 0.3F ? std::round(value) : value);
    }
    const auto found = values_of(sample(values), {.by = NormalizeBy::Percentiles});
    std::ranges::sort(values);
    const auto at = [&](double fraction) {
      return values[static_cast<std::size_t>(
          std::llround(fraction * static_cast<double>(size - 1)))];
    };
    EXPECT_EQ(found.normalization.mean[0], at(0.01)) << size;
    const auto range = at(0.998) - at(0.01);
    EXPECT_EQ(found.normalization.deviation[0], range > 0 ? range : 1) << size;
    EXPECT_EQ(found.constant[0], !(range > 0));
  }
}

TEST(Normalization, what_is_far_from_training_is_told_with_its_numbers) {
  const Normalization training = {{0.5F}, {0.1F}};
  const auto warning = [&](const std::vector<float>& values) {
    return range_warning(values_of(sample(values), {}), training);
  };
  EXPECT_EQ(warning({0.4F, 0.6F}), "");
  EXPECT_EQ(warning({0.3F, 0.45F}), "");
  EXPECT_THAT(warning({0.02F, 0.04F}), AllOf(HasSubstr("mean 0.03"), HasSubstr("0.5 and 0.1")));
  EXPECT_THAT(warning({0.48F, 0.52F}), HasSubstr("deviation 0.02"));
  EXPECT_EQ(warning({0.5F, 0.5F}), "");
  const Normalization two = {{0.5F, 7}, {0.1F, 1}};
  EXPECT_THAT(range_warning(values_of(sample({0.4F, 0.6F, 0, 2}, 2), {}), two),
              HasSubstr("of channel 1 have mean 1"));
}

TEST(Normalization, a_sample_is_prepared_as_its_training_was) {
  auto one = sample({10, 30});
  EXPECT_THAT(prepare_as_trained(one, {}, {{0}, {1}}), HasSubstr("mean 20"));
  EXPECT_THAT(one.image, ElementsAre(10, 30));
  EXPECT_EQ(prepare_as_trained(one, {.by = NormalizeBy::Image}, {}), "");
  EXPECT_THAT(one.image, ElementsAre(-1, 1));
}

}  // namespace
}  // namespace triptych::segmentation::normalization_tests
