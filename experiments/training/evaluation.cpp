// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/evaluation.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/error.h"

namespace triptych::training {
namespace {

segmentation::Overlap overlap_of(const segmentation::ConfusionMatrix& matrix, std::int64_t label) {
  segmentation::Overlap overlap{.both = matrix.at(label, label)};
  for (std::int64_t other = 0; other < matrix.classes(); ++other) {
    if (other == label) continue;
    overlap.only_predicted += matrix.at(other, label);
    overlap.only_there += matrix.at(label, other);
  }
  return overlap;
}

}  // namespace

segmentation::Score ImageEvaluation::mean_dice() const {
  double sum = 0;
  int count = 0;
  for (const auto& one : classes) {
    if (!one) continue;
    sum += one->overlap.dice();
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

Evaluation::Evaluation(std::int64_t classes, const EvaluationOptions& options)
    : classes_(std::max<std::int64_t>(2, classes)),
      options_(options),
      scorer_(classes_),
      confusion_(classes_),
      boundary_(classes_, options.tolerance) {
  if (!options.regions) return;
  if (*options.regions < 0 || *options.regions >= classes_) {
    throw InvalidArgument(
        fmt::format("the option regions {} is no class of the model: they are 0 to {}",
                    *options.regions, classes_ - 1));
  }
  regions_.emplace(static_cast<std::uint8_t>(*options.regions));
}

std::vector<std::optional<ClassEvaluation>> Evaluation::judge_classes(
    const segmentation::Sample& sample, const Segmentation& predicted) const {
  segmentation::ConfusionMatrix matrix(classes_);
  matrix.add(predicted.classes, sample.labels);
  std::vector<std::optional<ClassEvaluation>> judged;
  for (std::int64_t label = 1; label < classes_; ++label) {
    const auto overlap = overlap_of(matrix, label);
    auto& one = judged.emplace_back();
    if (overlap.absent()) continue;
    one = ClassEvaluation{overlap, segmentation::boundary_scores(
                                       predicted.classes, sample.labels, predicted.size,
                                       static_cast<std::uint8_t>(label), options_.tolerance)};
  }
  return judged;
}

void Evaluation::add(const segmentation::Sample& sample, const Segmentation& predicted) {
  scorer_.add(predicted.classes, sample.labels);
  confusion_.add(predicted.classes, sample.labels);
  calibration_.add(predicted.probabilities, predicted.channels, sample.labels);
  segmentation::Scorer alone(classes_);
  alone.add(predicted.classes, sample.labels);
  segmentation::Calibration calibration;
  calibration.add(predicted.probabilities, predicted.channels, sample.labels);
  ImageEvaluation image = {.name = sample.name,
                           .size = predicted.size,
                           .pixel_accuracy = alone.scores().pixel_accuracy,
                           .calibration_error = calibration.expected_error(),
                           .brier = calibration.brier(),
                           .classes = judge_classes(sample, predicted),
                           .regions = std::nullopt};
  for (std::size_t i = 0; i < image.classes.size(); ++i) {
    const auto& one = image.classes[i];
    if (one && one->boundary) boundary_.add(static_cast<std::int64_t>(i) + 1, *one->boundary);
  }
  if (regions_) {
    image.regions = regions_->add(predicted.classes, predicted.probability_of(*options_.regions),
                                  sample.labels, predicted.size);
  }
  images_.push_back(std::move(image));
}

std::vector<std::size_t> Evaluation::worst(std::size_t count) const {
  std::vector<std::size_t> order(images_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return images_[i].mean_dice().value_or(std::numeric_limits<double>::infinity());
  });
  order.resize(std::min(count, order.size()));
  return order;
}

}  // namespace triptych::training
