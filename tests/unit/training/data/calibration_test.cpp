// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/calibration.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {
namespace {

using Labels = std::vector<std::uint8_t>;

TEST(Probabilities, are_a_sigmoid_of_one_channel_and_a_softmax_of_more) {
  const auto one = probabilities_from_logits(std::vector<float>{0, 2, -100}, 1);
  EXPECT_FLOAT_EQ(one[0], 0.5F);
  EXPECT_NEAR(one[1], 1 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_NEAR(one[2], 0, 1e-6);
  const auto three = probabilities_from_logits(std::vector<float>{1, 90, 2, 90, 3, -90}, 3);
  const auto sum = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  EXPECT_NEAR(three[0], std::exp(1.0) / sum, 1e-6);
  EXPECT_NEAR(three[4], std::exp(3.0) / sum, 1e-6);
  EXPECT_FLOAT_EQ(three[1], 0.5F);
  EXPECT_FLOAT_EQ(three[3], 0.5F);
  EXPECT_THROW(probabilities_from_logits(std::vector<float>{1, 2, 3}, 2), InvalidArgument);
}

TEST(Calibration, of_two_classes_has_the_values_of_the_formulas) {
  Calibration calibration;
  // Confidences 0.9 (right), 0.9 (wrong), 0.8 (right). The last pixel counts nowhere.
  calibration.add(std::vector<float>{0.9F, 0.9F, 0.2F, 0.5F}, 1, Labels{1, 0, 0, kIgnored});
  EXPECT_EQ(calibration.pixels(), 3);
  EXPECT_NEAR(calibration.expected_error(), (std::abs(1 - 1.8) + std::abs(1 - 0.8)) / 3, 1e-6);
  EXPECT_NEAR(calibration.brier(), (0.01 + 0.81 + 0.04) / 3, 1e-6);
  EXPECT_EQ(calibration.bins()[13].pixels, 2) << "13/15 < 0.9 <= 14/15";
  EXPECT_EQ(calibration.bins()[13].right, 1);
}

TEST(Calibration, two_channels_say_what_one_does) {
  Calibration one, two;
  one.add(std::vector<float>{0.75F, 0.125F}, 1, Labels{0, 0});
  two.add(std::vector<float>{0.25F, 0.875F, 0.75F, 0.125F}, 2, Labels{0, 0});
  EXPECT_DOUBLE_EQ(one.brier(), two.brier());
  EXPECT_DOUBLE_EQ(one.expected_error(), two.expected_error());
}

TEST(Calibration, half_right_at_half_is_perfect_and_certain_errors_are_the_worst) {
  Calibration fair, wrong;
  fair.add(std::vector<float>{0.5F, 0.5F}, 1, Labels{0, 1});
  EXPECT_DOUBLE_EQ(fair.expected_error(), 0);
  wrong.add(std::vector<float>{1, 0, 0, 1}, 2, Labels{1, 0});
  EXPECT_DOUBLE_EQ(wrong.expected_error(), 1);
  EXPECT_DOUBLE_EQ(wrong.brier(), 1);
  EXPECT_THROW(wrong.add(std::vector<float>{1}, 1, Labels{1, 0}), InvalidArgument);
}

}  // namespace
}  // namespace triptych::segmentation
