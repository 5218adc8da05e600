// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/best_epoch.h"

#include <gtest/gtest.h>

namespace triptych::training {
namespace {

std::vector<EpochReport> epochs_of(const std::vector<double>& dice) {
  std::vector<EpochReport> epochs;
  for (const double value : dice) {
    auto& report = epochs.emplace_back();
    report.scores.images = 1;
    report.scores.mean_dice = value;
    report.validation_loss = 1 - value * value;
  }
  return epochs;
}

TEST(BestEpoch, is_the_first_of_the_highest_dice_or_of_the_lowest_loss) {
  auto epochs = epochs_of({0.5, 0.75, 0.75, 0.25});
  epochs[3].validation_loss = 0;
  EXPECT_EQ(best_epoch(epochs, Keep::Dice), 1U);
  EXPECT_EQ(best_epoch(epochs, Keep::Loss), 3U);
  EXPECT_EQ(best_epoch(epochs, Keep::None), std::nullopt);
}

TEST(BestEpoch, is_none_that_nobody_judged) {
  auto epochs = epochs_of({0.5, 0.25});
  epochs[0].scores.images = 0;
  EXPECT_EQ(best_epoch(epochs, Keep::Dice), 1U);
  EXPECT_EQ(best_epoch({}, Keep::Dice), std::nullopt);
}

TEST(BestEpoch, by_dice_is_none_without_a_dice) {
  auto epochs = epochs_of({0, 0.5, 0.25});
  epochs[1].scores.mean_dice.reset();
  EXPECT_EQ(best_epoch(epochs, Keep::Dice), 2U);
  EXPECT_EQ(best_epoch(epochs, Keep::Loss), 1U) << "the loss is known all the same";
  EXPECT_EQ(best_epoch(std::span(epochs).subspan(1, 1), Keep::Dice), std::nullopt);
}

TEST(Patience, ends_when_so_many_evaluations_were_no_better) {
  const auto epochs = epochs_of({0.5, 0.75, 0.75, 0.25});
  EXPECT_TRUE(out_of_patience(epochs, Keep::Dice, 2));
  EXPECT_FALSE(out_of_patience(epochs, Keep::Dice, 3));
  EXPECT_FALSE(out_of_patience(std::span(epochs).first(2), Keep::Dice, 1));
  EXPECT_FALSE(out_of_patience(epochs, Keep::Dice, 0)) << "without it no run ends early";
  EXPECT_FALSE(out_of_patience(epochs, Keep::None, 1));
}

}  // namespace
}  // namespace triptych::training
