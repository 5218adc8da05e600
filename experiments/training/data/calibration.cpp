// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/exact_math.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {
namespace {

std::size_t planes_of(std::size_t values, std::int64_t channels) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(channels, 1));
  if (channels < 1 || values % count != 0)
    throw_invalid("calibration", fmt::format("{} values are no {} planes", values, channels));
  return values / count;
}

/// What a network says of one pixel.
struct Claim {
  std::uint8_t label = 0;
  double confidence = 0;
  double squares = 0;  ///< the Brier score
};

Claim claim_of(std::span<const float> probabilities, std::size_t pixels, std::size_t pixel,
               std::uint8_t truth) {
  const auto channels = probabilities.size() / pixels;
  if (channels == 1) {
    const double p = probabilities[pixel], y = truth == 1 ? 1 : 0;
    return {static_cast<std::uint8_t>(p > 0.5), std::max(p, 1 - p), (p - y) * (p - y)};
  }
  Claim claim{.label = 0, .confidence = probabilities[pixel]};
  for (std::size_t c = 0; c < channels; ++c) {
    const double p = probabilities[c * pixels + pixel], y = truth == c ? 1 : 0;
    claim.squares += (p - y) * (p - y) / 2;
    if (p > claim.confidence) {
      claim.label = static_cast<std::uint8_t>(c);
      claim.confidence = p;
    }
  }
  return claim;
}

}  // namespace

std::vector<float> probabilities_from_logits(std::span<const float> logits, std::int64_t channels) {
  const auto pixels = planes_of(logits.size(), channels);
  std::vector<float> result(logits.size());
  if (channels == 1) {
    std::ranges::transform(logits, result.begin(), [](float x) { return exact::sigmoid(x); });
    return result;
  }
  for (std::size_t i = 0; i < pixels; ++i) {
    float largest = logits[i];
    for (std::size_t at = i; at < logits.size(); at += pixels)
      largest = std::max(largest, logits[at]);
    float sum = 0;
    for (std::size_t at = i; at < logits.size(); at += pixels)
      sum += result[at] = exact::exp(logits[at] - largest);
    for (std::size_t at = i; at < logits.size(); at += pixels) result[at] /= sum;
  }
  return result;
}

void Calibration::add(std::span<const float> probabilities, std::int64_t channels,
                      std::span<const std::uint8_t> target) {
  if (planes_of(probabilities.size(), channels) != target.size())
    throw_invalid("calibration", "probabilities and target differ in size");
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == kIgnored) continue;
    const auto claim = claim_of(probabilities, target.size(), i, target[i]);
    // A bin holds (i / 15, (i + 1) / 15].
    const auto place = std::ceil(claim.confidence * static_cast<double>(kBins)) - 1;
    auto& bin =
        bins_[static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(kBins - 1)))];
    ++bin.pixels;
    bin.right += claim.label == target[i];
    bin.confidence += claim.confidence;
    squares_ += claim.squares;
    ++pixels_;
  }
}

double Calibration::expected_error() const {
  double sum = 0;
  for (const auto& bin : bins_) sum += std::abs(static_cast<double>(bin.right) - bin.confidence);
  return pixels_ > 0 ? sum / static_cast<double>(pixels_) : 0;
}

double Calibration::brier() const {
  return pixels_ > 0 ? squares_ / static_cast<double>(pixels_) : 0;
}

}  // namespace triptych::segmentation
