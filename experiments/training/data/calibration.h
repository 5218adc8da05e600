// Calibration of probabilities: of the pixels to which a network gives its class with 80 %, 80 %
// should be right.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace triptych::segmentation {

/// Probabilities from a network's output [channels, pixels]: of one channel the sigmoid, which is
/// the probability of class 1, else the softmax over the channels. By the exact functions of
/// core/base: the same bits everywhere.
std::vector<float> probabilities_from_logits(std::span<const float> logits, std::int64_t channels);

/// Over all pixels together except ignored ones.
class Calibration {
 public:
  /// Bins of equal width of the probability of the predicted class.
  static constexpr std::size_t kBins = 15;

  struct Bin {
    std::int64_t pixels = 0;
    std::int64_t right = 0;
    double confidence = 0;  ///< the sum over the pixels
  };

  /// Probabilities as probabilities_from_logits gives them. One channel is of two classes. Throws
  /// InvalidArgument when the sizes do not fit.
  void add(std::span<const float> probabilities, std::int64_t channels,
           std::span<const std::uint8_t> target);

  std::int64_t pixels() const { return pixels_; }
  /// ECE (Guo et al., 2017): the mean over the pixels of |share of right ones - mean confidence| of
  /// their bin. The predicted class is the most probable one, of one channel class 1 above 1/2.
  double expected_error() const;
  /// Mean over the pixels of half the sum over the classes of (p - y)^2, y being 1 for the true
  /// class and 0 for others: of two classes (p - y)^2 of class 1. From 0 to 1.
  double brier() const;
  const std::vector<Bin>& bins() const { return bins_; }

 private:
  std::vector<Bin> bins_ = std::vector<Bin>(kBins);
  std::int64_t pixels_ = 0;
  double squares_ = 0;
};

}  // namespace triptych::segmentation
