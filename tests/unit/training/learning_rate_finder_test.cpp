// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/learning_rate_finder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/unit/training/tiny_run.h"

namespace triptych::training {
namespace {

TEST(LearningRateFinder, rates_rise_by_equal_ratios_until_the_loss_does) {
  const DeviceSet machine({.threads = 1});
  int heard = 0;
  auto config = tiny_run();
  config.training.optimizer.kind = OptimizerKind::Sgd;
  const auto finding =
      try_learning_rates(machine, config, {1e-4, 1e4, 41}, [&](const RateTrial&) { ++heard; });
  EXPECT_TRUE(finding.diverged);
  EXPECT_LT(finding.trials.size(), 41u);
  EXPECT_EQ(finding.trials.size(), static_cast<std::size_t>(heard));
  for (std::size_t i = 0; i + 1 < finding.trials.size(); ++i) {
    EXPECT_NEAR(finding.trials[i + 1].rate / finding.trials[i].rate, std::pow(10.0, 8.0 / 40),
                1e-4);
    EXPECT_TRUE(std::isfinite(finding.trials[i].loss));
  }
  EXPECT_FLOAT_EQ(static_cast<float>(finding.trials.front().smoothed), finding.trials[0].loss);
  const auto again = try_learning_rates(machine, config, {1e-4, 1e4, 41});
  EXPECT_EQ(again.trials.back().smoothed, finding.trials.back().smoothed);
}

TEST(LearningRateFinder, stops_when_it_is_told_to_and_wants_a_rising_range) {
  const DeviceSet machine({.threads = 1});
  int steps = 0;
  const auto finding = try_learning_rates(
      machine, tiny_run(), {}, [](const RateTrial&) {}, [&] { return ++steps <= 3; });
  EXPECT_EQ(finding.trials.size(), 3u);
  EXPECT_THROW(try_learning_rates(machine, tiny_run(), {1, 1, 10}), InvalidArgument);
  EXPECT_THROW(try_learning_rates(machine, tiny_run(), {0, 1, 10}), InvalidArgument);
  EXPECT_THROW(try_learning_rates(machine, tiny_run(), {0.1, 1, 1}), InvalidArgument);
}

/// Losses that stay, fall fastest at 10^-3 and are lowest at 10^-2.
std::vector<RateTrial> valley() {
  std::vector<RateTrial> trials;
  for (int i = 0; i <= 50; ++i) {
    const double power = -6 + 0.1 * i;
    const double fall = 1 / (1 + std::exp(4 * (power + 3)));
    const double rise = std::max(0.0, power + 2) * 2;
    trials.push_back({static_cast<float>(std::pow(10, power)), 0, fall + rise});
  }
  return trials;
}

TEST(LearningRateFinder, advises_before_the_valley) {
  auto trials = valley();
  const auto advice = advise(trials);
  ASSERT_TRUE(advice);
  EXPECT_NEAR(std::log10(advice->steepest), -3, 0.11);
  EXPECT_NEAR(std::log10(advice->tenth_of_lowest), -3, 0.11);
  trials.push_back({1, NAN, NAN});
  EXPECT_TRUE(advise(trials));
  EXPECT_FALSE(advise(std::span(trials).first(9)));
  for (auto& trial : trials) trial.smoothed = -std::log10(double{trial.rate}) * -1;
  EXPECT_FALSE(advise(trials)) << "it only rises";
}

}  // namespace
}  // namespace triptych::training
