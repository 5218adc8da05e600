// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/pixel_weights.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"
#include "experiments/training/data/batcher.h"

namespace triptych::segmentation {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// One image of one row.
Dataset row(std::vector<std::uint8_t> labels, std::int64_t classes = 1) {
  Sample sample;
  sample.name = "row";
  sample.height = 1;
  sample.width = std::ssize(labels);
  sample.image.resize(labels.size());
  sample.labels = std::move(labels);
  Dataset dataset;
  dataset.classes = classes;
  dataset.samples.push_back(std::move(sample));
  return dataset;
}

std::vector<float> weights_of(Dataset dataset, const WeightOptions& options) {
  set_pixel_weights(dataset, options);
  return dataset.samples[0].weights;
}

TEST(PixelWeights, of_classes_have_mean_one) {
  EXPECT_THAT(weights_of(row({0, 0, 0, 1}), {.classes = "1,5"}),
              ElementsAre(FloatEq(0.5F), FloatEq(0.5F), FloatEq(0.5F), FloatEq(2.5F)));
}

TEST(PixelWeights, of_ignored_pixels_are_0_and_the_others_count_more) {
  EXPECT_THAT(weights_of(row({0, kIgnored, kIgnored, 1}), {.classes = "1,1"}),
              ElementsAre(2, 0, 0, 2));
}

TEST(PixelWeights, balanced_give_each_class_the_same_share) {
  EXPECT_THAT(weights_of(row({0, 0, 0, 1, 2, 2}, 3), {.classes = "balanced"}),
              ElementsAre(FloatEq(2.0F / 3), FloatEq(2.0F / 3), FloatEq(2.0F / 3), 2, 1, 1));
  EXPECT_THAT(weights_of(row({1, 1}), {.classes = "balanced"}), Each(1)) << "a class is absent";
}

// Objects at 1 and 4, and one far away: the gap between the first two gains by the formula.
TEST(PixelWeights, background_between_two_objects_gains) {
  const WeightOptions options = {.classes = {}, .border = 10, .border_sigma = 2};
  std::vector<std::uint8_t> labels(40);
  labels[1] = labels[4] = labels[39] = 1;
  const auto weights = weights_of(row(labels), options);
  const auto gain = [](double first, double second) {
    return 10 * std::exp(-(first + second) * (first + second) / 8);
  };
  const float scale = weights[1];  // an object's own weight is 1 before all are scaled
  EXPECT_NEAR(weights[2] / scale, 1 + gain(1, 2), 1e-5);
  EXPECT_NEAR(weights[3] / scale, 1 + gain(1, 2), 1e-5);
  EXPECT_NEAR(weights[0] / scale, 1 + gain(1, 4), 1e-5);
  EXPECT_NEAR(weights[6] / scale, 1 + gain(2, 5), 1e-5);
  EXPECT_EQ(weights[22], scale) << "both objects are farther away than 5 sigma";
  EXPECT_EQ(weights[4], scale);
}

TEST(PixelWeights, refuse_texts_that_are_no_weights) {
  for (const auto* text : {"1", "1,2,3", "1,x", "1,", ",1", "-1,2", "nan,1", "0,0", "1;2", "1,inf"})
    EXPECT_THAT([&] { parse_class_weights(text, 1); },
                ThrowsMessage<InvalidArgument>(HasSubstr("class weights")))
        << text;
  EXPECT_THAT(parse_class_weights("0,2.5", 1), ElementsAre(0, 2.5));
}

TEST(PixelWeights, refuse_a_set_in_which_nothing_counts) {
  EXPECT_THROW(weights_of(row({0, 0}), {.classes = "0,1"}), InvalidArgument);
}

TEST(PixelWeights, come_with_their_pixels_in_a_batch) {
  auto dataset = row({0, 1, kIgnored, 1});
  set_pixel_weights(dataset, {.classes = "1,3"});
  const Batcher batcher(dataset, {}, {.augment = {.height = 1, .width = 4, .transpose = false}});
  const auto batch = batcher.draw(0, 3);
  ASSERT_EQ(batch.y.spec(), (TensorSpec{DType::F32, {3, 2, 1, 4}}));
  for (std::size_t b = 0; b < 3; ++b) {
    const auto y = batch.y.as<float>().subspan(8 * b, 8);
    for (std::size_t i = 0; i < 4; ++i) {
      const float weight = y[i] == kIgnored ? 0 : y[i] == 1 ? 12.0F / 7 : 4.0F / 7;
      EXPECT_THAT(y[4 + i], FloatNear(weight, 1e-6F));
    }
  }
}

}  // namespace
}  // namespace triptych::segmentation
