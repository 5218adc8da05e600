// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/metrics.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {
namespace {

/// 1 of nothing.
double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

Overlap overlap(std::span<const std::uint8_t> predicted, std::span<const std::uint8_t> target,
                std::uint8_t label) {
  Overlap count;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == kIgnored) continue;
    const bool is = predicted[i] == label, should = target[i] == label;
    count.both += is && should;
    count.only_predicted += is && !should;
    count.only_there += !is && should;
  }
  return count;
}

void require_same_size(std::span<const std::uint8_t> predicted,
                       std::span<const std::uint8_t> target) {
  if (predicted.size() == target.size()) return;
  throw_invalid("metrics", fmt::format("{} pixels predicted, the target has {}", predicted.size(),
                                       target.size()));
}

/// Throws InvalidArgument unless there may be so many.
std::size_t checked_classes(std::int64_t classes) {
  if (classes < 1 || classes > kIgnored)
    throw_invalid("metrics", fmt::format("classes is from 1 to {}", kIgnored));
  return static_cast<std::size_t>(classes);
}

/// Sets the means over the classes.
void average_classes(Scores& scores) {
  const auto mean = [&](Score ClassScores::*score) -> Score {
    const auto scored = std::ranges::count_if(
        scores.classes, [&](const ClassScores& one) { return (one.*score).has_value(); });
    if (scored == 0) return std::nullopt;
    const auto weight = 1.0 / static_cast<double>(scored);
    double sum = 0;
    for (const auto& one : scores.classes) sum += weight * (one.*score).value_or(0);
    return sum;
  };
  scores.mean_dice = mean(&ClassScores::dice);
  scores.mean_iou = mean(&ClassScores::iou);
  scores.pooled_dice = mean(&ClassScores::pooled_dice);
  scores.pooled_iou = mean(&ClassScores::pooled_iou);
}

}  // namespace

double Overlap::dice() const { return ratio(2 * both, 2 * both + only_predicted + only_there); }

double Overlap::iou() const { return ratio(both, both + only_predicted + only_there); }

Overlap& Overlap::operator+=(const Overlap& other) {
  both += other.both;
  only_predicted += other.only_predicted;
  only_there += other.only_there;
  return *this;
}

Scorer::Scorer(std::int64_t classes)
    : classes_(std::max<std::size_t>(checked_classes(classes) - 1, 1)) {}

void Scorer::add(std::span<const std::uint8_t> predicted, std::span<const std::uint8_t> target) {
  require_same_size(predicted, target);
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const auto count = overlap(predicted, target, static_cast<std::uint8_t>(i + 1));
    if (count.absent()) continue;
    auto& tally = classes_[i];
    tally.pooled += count;
    tally.dice += count.dice();
    tally.iou += count.iou();
    ++tally.images;
  }
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == kIgnored) continue;
    right_ += predicted[i] == target[i];
    ++pixels_;
  }
  ++images_;
}

Scores Scorer::scores() const {
  Scores result;
  if (images_ == 0) return result;
  result.images = images_;
  for (const auto& tally : classes_) {
    auto& one = result.classes.emplace_back();
    if (tally.images == 0) continue;
    const auto images = static_cast<double>(tally.images);
    one = {tally.images, tally.dice / images, tally.iou / images, tally.pooled.dice(),
           tally.pooled.iou()};
  }
  average_classes(result);
  result.pixel_accuracy = ratio(right_, pixels_);
  result.pixel_error = ratio(pixels_ - right_, pixels_);
  return result;
}

ConfusionMatrix::ConfusionMatrix(std::int64_t classes)
    : classes_(classes), counts_(checked_classes(classes) * checked_classes(classes)) {}

void ConfusionMatrix::add(std::span<const std::uint8_t> predicted,
                          std::span<const std::uint8_t> target) {
  require_same_size(predicted, target);
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == kIgnored) continue;
    if (predicted[i] >= classes_ || target[i] >= classes_) {
      throw_invalid("metrics", fmt::format("class {} of {} classes",
                                           std::max(predicted[i], target[i]), classes_));
    }
    ++counts_[static_cast<std::size_t>(target[i] * classes_ + predicted[i])];
  }
}

std::vector<std::uint8_t> classes_from_logits(std::span<const float> logits,
                                              std::int64_t channels) {
  if (channels < 1 || channels > 256 || std::ssize(logits) % channels != 0) {
    throw_invalid("metrics", fmt::format("{} logits are no {} planes", logits.size(), channels));
  }
  const auto pixels = logits.size() / static_cast<std::size_t>(channels);
  std::vector<std::uint8_t> classes(pixels);
  for (std::size_t i = 0; i < pixels; ++i) {
    std::size_t best = channels == 1 && logits[i] > 0 ? 1 : 0;
    for (std::size_t c = 1; c < static_cast<std::size_t>(channels); ++c) {
      if (logits[c * pixels + i] > logits[best * pixels + i]) best = c;
    }
    classes[i] = static_cast<std::uint8_t>(best);
  }
  return classes;
}

}  // namespace triptych::segmentation
