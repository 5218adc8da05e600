// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/metrics.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {
namespace {

using ::testing::ElementsAre;
using Labels = std::vector<std::uint8_t>;

TEST(Scorer, one_image_has_the_scores_of_the_formulas) {
  Scorer scorer(1);
  scorer.add(Labels{1, 1, 1, 0, 0}, Labels{1, 1, 0, 1, 0});
  const auto scores = scorer.scores();
  EXPECT_DOUBLE_EQ(scores.mean_dice.value(), 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores.mean_iou.value(), 2.0 / 4);
  EXPECT_DOUBLE_EQ(scores.pixel_accuracy, 3.0 / 5);
  EXPECT_DOUBLE_EQ(scores.pixel_error, 2.0 / 5);
  EXPECT_EQ(scores.images, 1);
}

TEST(Scorer, averages_over_images_and_pools_over_pixels) {
  Scorer scorer(1);
  scorer.add(Labels{1, 1, 1, 1}, Labels{1, 1, 1, 1});
  scorer.add(Labels{1, 0}, Labels{0, 1});
  const auto scores = scorer.scores();
  EXPECT_DOUBLE_EQ(scores.mean_dice.value(), 0.5);
  EXPECT_DOUBLE_EQ(scores.mean_iou.value(), 0.5);
  EXPECT_DOUBLE_EQ(scores.pooled_dice.value(), 8.0 / 10);
  EXPECT_DOUBLE_EQ(scores.pooled_iou.value(), 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores.pixel_accuracy, 4.0 / 6);
}

TEST(Scorer, images_that_say_nothing_of_a_class_are_left_out) {
  Scorer scorer(1);
  scorer.add(Labels{0, 0}, Labels{0, 0});
  EXPECT_EQ(scorer.scores().mean_dice, std::nullopt) << "nothing was there, and nothing was found";
  EXPECT_EQ(scorer.scores().pooled_iou, std::nullopt);
  EXPECT_EQ(scorer.scores().pixel_accuracy, 1);
  EXPECT_EQ(scorer.scores().classes.front().images, 0);
  scorer.add(Labels{1, 1}, Labels{1, 0});
  scorer.add(Labels{0, 0}, Labels{0, 0});
  EXPECT_DOUBLE_EQ(scorer.scores().mean_dice.value(), 2.0 / 3) << "of one image";
  EXPECT_DOUBLE_EQ(scorer.scores().mean_iou.value(), 1.0 / 2);
  EXPECT_EQ(scorer.scores().classes.front().images, 1);
  EXPECT_EQ(scorer.scores().images, 3);
  EXPECT_EQ(Scorer(1).scores().images, 0);
}

TEST(Scorer, classes_have_equal_weight_without_the_background) {
  Scorer scorer(3);
  scorer.add(Labels{0, 1, 1, 2}, Labels{0, 1, 1, 1});
  // Class 1: 2 both, 1 only there. Class 2: 1 only predicted.
  EXPECT_DOUBLE_EQ(scorer.scores().mean_dice.value(), (4.0 / 5 + 0) / 2);
  EXPECT_DOUBLE_EQ(scorer.scores().pooled_iou.value(), (2.0 / 3 + 0) / 2);
  scorer.add(Labels{0, 1}, Labels{0, 1});  // says nothing of class 2
  const auto scores = scorer.scores();
  ASSERT_EQ(scores.classes.size(), 2U);
  EXPECT_DOUBLE_EQ(scores.classes[0].dice.value(), (4.0 / 5 + 1) / 2);
  EXPECT_DOUBLE_EQ(scores.classes[1].dice.value(), 0);
  EXPECT_EQ(scores.classes[1].images, 1);
  EXPECT_DOUBLE_EQ(scores.mean_dice.value(), ((4.0 / 5 + 1) / 2 + 0) / 2);
}

TEST(Scorer, classes_that_are_neither_there_nor_predicted_raise_no_mean) {
  Scorer alone(2), among(4);
  for (auto* scorer : {&alone, &among}) {
    scorer->add(Labels{0, 1, 1, 0}, Labels{0, 1, 0, 1});
    scorer->add(Labels{1, 1, 1, 0}, Labels{1, 1, 0, 0});
  }
  const auto scores = among.scores(), expected = alone.scores();
  EXPECT_LT(expected.mean_dice, 1.0);
  EXPECT_EQ(scores.mean_dice, expected.mean_dice);
  EXPECT_EQ(scores.mean_iou, expected.mean_iou);
  EXPECT_EQ(scores.pooled_dice, expected.pooled_dice);
  EXPECT_EQ(scores.pooled_iou, expected.pooled_iou);
  ASSERT_EQ(scores.classes.size(), 3U);
  for (const auto& one : {scores.classes[1], scores.classes[2]}) {
    EXPECT_EQ(one.images, 0);
    for (const auto& score : {one.dice, one.iou, one.pooled_dice, one.pooled_iou})
      EXPECT_EQ(score, std::nullopt);
  }
}

TEST(Scorer, refuses_sizes_that_differ) {
  Scorer scorer(1);
  EXPECT_THROW(scorer.add(Labels{1}, Labels{1, 1}), InvalidArgument);
  EXPECT_THROW(Scorer(0), InvalidArgument);
}

TEST(Scorer, ignored_pixels_count_nowhere) {
  Scorer scorer(1);
  scorer.add(Labels{1, 1, 0, 0}, Labels{1, kIgnored, kIgnored, 0});
  EXPECT_EQ(scorer.scores().mean_dice, 1);
  EXPECT_EQ(scorer.scores().pixel_accuracy, 1);
  scorer.add(Labels{1, 1}, Labels{kIgnored, kIgnored});
  EXPECT_EQ(scorer.scores().classes.front().images, 1);
}

TEST(ConfusionMatrix, counts_pixels_by_true_and_predicted_class) {
  ConfusionMatrix matrix(3);
  matrix.add(Labels{0, 1, 1, 2, 2}, Labels{0, 1, 2, 1, kIgnored});
  matrix.add(Labels{0}, Labels{0});
  EXPECT_EQ(matrix.at(0, 0), 2);
  EXPECT_EQ(matrix.at(1, 1), 1);
  EXPECT_EQ(matrix.at(2, 1), 1);
  EXPECT_EQ(matrix.at(1, 2), 1);
  EXPECT_EQ(matrix.at(2, 2), 0);
  EXPECT_THROW(matrix.add(Labels{3}, Labels{0}), InvalidArgument);
  EXPECT_THROW(ConfusionMatrix(256), InvalidArgument) << "255 marks pixels to be ignored";
}

TEST(ClassesFromLogits, one_channel_is_a_threshold_and_more_a_maximum) {
  EXPECT_THAT(classes_from_logits(std::vector<float>{-1, 0, 0.1F}, 1), ElementsAre(0, 0, 1));
  EXPECT_THAT(classes_from_logits(std::vector<float>{1, 2, 3, 1, 3, 2, 0, 0, 9}, 3),
              ElementsAre(0, 1, 2));
  EXPECT_THROW(classes_from_logits(std::vector<float>{1, 2, 3}, 2), InvalidArgument);
}

}  // namespace
}  // namespace triptych::segmentation
