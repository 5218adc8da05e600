// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/log_loss.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/wide_math.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {
namespace {

/// log(1 + exp(x)) without overflow, and without the cancellation of 1 + e^-|x|.
double softplus(double x) {
  const double e = wide::exp(-std::abs(x)), u = 1 + e;
  return std::max(x, 0.0) + (wide::log(u) + (e - (u - 1)) / u);
}

/// log(sum(exp(logits))) - logits[label], for pixel `i` of planes.
double negative_log_softmax(std::span<const float> logits, std::size_t pixels, std::size_t i,
                            std::size_t label) {
  const auto channels = logits.size() / pixels;
  double largest = logits[i];
  for (std::size_t c = 1; c < channels; ++c)
    largest = std::max<double>(largest, logits[c * pixels + i]);
  double sum = 0;
  for (std::size_t c = 0; c < channels; ++c) sum += wide::exp(logits[c * pixels + i] - largest);
  return largest + wide::log(sum) - logits[label * pixels + i];
}

}  // namespace

double log_loss_at(std::span<const float> logits, std::size_t pixels, std::size_t i,
                   std::int64_t label) {
  const double x = logits[i];
  return logits.size() == pixels
             ? softplus(label == 1 ? -x : x)
             : negative_log_softmax(logits, pixels, i, static_cast<std::size_t>(label));
}

double log_loss(std::span<const float> logits, std::span<const std::uint8_t> target,
                std::int64_t channels) {
  const auto pixels = target.size();
  if (channels < 1 || logits.size() != pixels * static_cast<std::size_t>(channels)) {
    throw_invalid("log loss", fmt::format("{} logits are no {} planes of {} pixels", logits.size(),
                                          channels, pixels));
  }
  double sum = 0;
  std::int64_t counted = 0;
  for (std::size_t i = 0; i < pixels; ++i) {
    if (target[i] == kIgnored) continue;
    if (target[i] >= std::max<std::int64_t>(2, channels))
      throw_invalid("log loss", fmt::format("label {} is none of the classes", target[i]));
    sum += log_loss_at(logits, pixels, i, target[i]);
    ++counted;
  }
  return counted == 0 ? 0 : sum / static_cast<double>(counted);
}

}  // namespace triptych::segmentation
