// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/evaluation.h"

#include <gmock/gmock.h>

#include "core/base/error.h"

namespace triptych::training {
namespace {

using ::testing::ElementsAre;
using Labels = std::vector<std::uint8_t>;

segmentation::Sample truth(std::string name, segmentation::Size size, Labels labels) {
  segmentation::Sample sample;
  sample.name = std::move(name);
  sample.height = size.height;
  sample.width = size.width;
  sample.labels = std::move(labels);
  return sample;
}

/// A prediction of two classes that is certain.
Segmentation certain(segmentation::Size size, Labels classes) {
  return {size, 1, {classes.begin(), classes.end()}, classes};
}

TEST(Evaluation, has_scores_of_each_image_and_of_all) {
  const segmentation::Size size = {1, 4};
  Evaluation evaluation(1, {.tolerance = 0, .regions = 1});
  evaluation.add(truth("right", size, {0, 1, 1, 0}), certain(size, {0, 1, 1, 0}));
  evaluation.add(truth("wrong", size, {0, 1, 1, 0}), certain(size, {1, 1, 0, 0}));
  evaluation.add(truth("empty", size, {0, 0, 0, 0}), certain(size, {0, 0, 0, 0}));
  ASSERT_EQ(evaluation.images().size(), 3U);
  const auto& wrong = evaluation.images()[1];
  EXPECT_EQ(wrong.name, "wrong");
  EXPECT_DOUBLE_EQ(wrong.mean_dice().value(), 0.5);
  EXPECT_EQ(evaluation.images()[2].mean_dice(), std::nullopt);
  EXPECT_DOUBLE_EQ(wrong.pixel_accuracy, 0.5);
  EXPECT_DOUBLE_EQ(wrong.brier, 0.5);
  EXPECT_DOUBLE_EQ(wrong.calibration_error, 0.5);
  EXPECT_DOUBLE_EQ(wrong.classes[0]->boundary->f1, 0.5);
  EXPECT_TRUE(wrong.regions);
  EXPECT_FALSE(evaluation.images()[2].classes[0]) << "it says nothing of the class";
  EXPECT_FALSE(evaluation.images()[2].regions);
  EXPECT_DOUBLE_EQ(evaluation.scores().mean_dice.value(), 0.75);
  EXPECT_EQ(evaluation.boundary().of_class(1).images, 2);
  EXPECT_DOUBLE_EQ(evaluation.boundary().of_class(1).f1, 0.75);
  EXPECT_EQ(evaluation.confusion().at(0, 1), 1);
  EXPECT_EQ(evaluation.confusion().at(1, 1), 3);
  EXPECT_EQ(evaluation.regions()->images(), 2);
  EXPECT_THAT(evaluation.worst(2), ElementsAre(1, 0));
  EXPECT_THAT(evaluation.worst(9), ElementsAre(1, 0, 2)) << "what has no score comes last";
}

TEST(Evaluation, refuses_regions_of_a_class_that_the_model_lacks) {
  EXPECT_THROW(Evaluation(1, {.regions = 2}), InvalidArgument);
  EXPECT_THROW(Evaluation(4, {.regions = -1}), InvalidArgument);
  EXPECT_NO_THROW(Evaluation(4, {.regions = 3}));
}

}  // namespace
}  // namespace triptych::training
