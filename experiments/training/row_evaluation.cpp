// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/row_evaluation.h"

#include <algorithm>

#include "core/base/wide_math.h"
#include "core/nn/losses.h"
#include "experiments/training/data/dataset.h"
#include "experiments/training/data/log_loss.h"

namespace triptych::training {
namespace {

/// Logits of one example as [classes, elements].
struct Planes {
  std::vector<float> logits;
  std::size_t classes = 1, elements = 1;

  float at(std::size_t label, std::size_t element) const {
    return logits[label * elements + element];
  }
};

Planes planes_of(const Tensor& row) {
  const auto axis = class_axis(row.shape());
  const auto values = row.as<float>();
  Planes planes = {.logits = {values.begin(), values.end()}};
  planes.classes = static_cast<std::size_t>(row.shape()[axis]);
  planes.elements = values.size() / planes.classes;
  if (axis == 1) return planes;
  for (std::size_t element = 0; element < planes.elements; ++element)
    for (std::size_t label = 0; label < planes.classes; ++label)
      planes.logits[label * planes.elements + element] = values[element * planes.classes + label];
  return planes;
}

/// The likeliest class of an element, of equals the first.
std::int64_t likeliest(const Planes& planes, std::size_t element) {
  if (planes.classes == 1) return planes.at(0, element) > 0 ? 1 : 0;
  std::size_t best = 0;
  for (std::size_t label = 1; label < planes.classes; ++label)
    if (planes.at(label, element) > planes.at(best, element)) best = label;
  return static_cast<std::int64_t>(best);
}

std::int64_t class_at(const Tensor& target, std::size_t element) {
  return target.dtype() == DType::I64 ? target.as<std::int64_t>()[element]
                                      : static_cast<std::int64_t>(target.as<float>()[element]);
}

RowJudgement judge_values(const Tensor& row, const Tensor& target) {
  const auto values = row.as<float>(), wanted = target.as<float>();
  RowJudgement result{.counted = std::ssize(values)};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = double{values[i]} - double{wanted[i]};
    result.loss += difference * difference;
  }
  result.loss /= static_cast<double>(values.size());
  return result;
}

}  // namespace

RowEvaluation::RowEvaluation(const RunConfig& config) : has_classes_(has_classes(config)) {}

RowJudgement RowEvaluation::judge_classes(const Tensor& row, const Tensor& target) {
  const auto planes = planes_of(row);
  RowJudgement result;
  for (std::size_t element = 0; element < planes.elements; ++element) {
    const auto truth = class_at(target, element), predicted = likeliest(planes, element);
    if (planes.elements == 1) {
      result.predicted = predicted;
      result.probability = wide::exp(-segmentation::log_loss_at(planes.logits, 1, 0, predicted));
    }
    if (truth == segmentation::kNoClass) continue;
    if (planes.elements == 1) result.truth = truth;
    ++result.counted;
    result.right += truth == predicted;
    ++confusion_[{truth, predicted}];
    result.loss += segmentation::log_loss_at(planes.logits, planes.elements, element, truth);
  }
  if (result.counted > 0) result.loss /= static_cast<double>(result.counted);
  return result;
}

void RowEvaluation::add(const std::string& name, const Tensor& row, const Tensor& target) {
  rows_.push_back(has_classes_ ? judge_classes(row, target) : judge_values(row, target));
  rows_.back().name = name;
}

double RowEvaluation::accuracy() const {
  std::int64_t counted = 0, right = 0;
  for (const auto& row : rows_) {
    counted += row.counted;
    right += row.right;
  }
  if (!has_classes_ || counted == 0) return 1;
  return static_cast<double>(right) / static_cast<double>(counted);
}

double RowEvaluation::loss() const {
  double sum = 0;
  std::int64_t counted = 0;
  for (const auto& row : rows_) {
    sum += row.loss * static_cast<double>(row.counted);
    counted += row.counted;
  }
  return counted == 0 ? 0 : sum / static_cast<double>(counted);
}

segmentation::Scores RowEvaluation::scores() const {
  segmentation::Scores scores;
  if (rows_.empty()) return scores;
  scores.images = std::ssize(rows_);
  scores.pixel_accuracy = accuracy();
  scores.pixel_error = 1 - scores.pixel_accuracy;
  return scores;
}

}  // namespace triptych::training
