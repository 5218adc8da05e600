// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/log_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {
namespace {

double loss_of(const std::vector<float>& logits, const std::vector<std::uint8_t>& target,
               std::int64_t channels) {
  return log_loss(logits, target, channels);
}

TEST(LogLoss, of_a_logit_is_that_of_two_classes_whose_logits_differ_by_it) {
  for (const float x : {-3.0F, 0.0F, 2.0F}) {
    for (const std::uint8_t label : {0, 1}) {
      const double probability = 1 / (1 + std::exp(static_cast<double>(label == 1 ? -x : x)));
      EXPECT_NEAR(loss_of({x}, {label}, 1), -std::log(probability), 1e-12);
      EXPECT_NEAR(loss_of({7, 7 + x}, {label}, 2), -std::log(probability), 1e-12);
    }
  }
}

TEST(LogLoss, is_a_mean_over_the_pixels_that_count) {
  EXPECT_NEAR(loss_of({0, 5, 0}, {1, kIgnored, 0}, 1), std::log(2.0), 1e-12);
  EXPECT_EQ(loss_of({5}, {kIgnored}, 1), 0);
}

TEST(LogLoss, of_large_logits_stays_finite) {
  EXPECT_EQ(loss_of({1e30F}, {0}, 1), static_cast<double>(1e30F));
  EXPECT_EQ(loss_of({1e30F, 0}, {0}, 2), 0);
}

TEST(LogLoss, refuses_what_does_not_fit) {
  EXPECT_THROW(loss_of({1, 2, 3}, {0}, 2), InvalidArgument);
  EXPECT_THROW(loss_of({1, 2}, {2}, 2), InvalidArgument);
}

}  // namespace
}  // namespace triptych::segmentation
