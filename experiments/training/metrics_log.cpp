// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/metrics_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/output_ledger.h"

namespace triptych::training {
namespace {

/// Without the background.
std::int64_t scored(const MetricsColumns& columns) {
  return columns.classes == 0 ? 0 : std::max<std::int64_t>(2, columns.classes) - 1;
}

std::vector<std::string> header_of(const MetricsColumns& columns) {
  std::vector<std::string> names = {"step", "epoch", "loss", "validation_loss"};
  if (columns.classes > 0) names.insert(names.end(), {"dice", "iou"});
  if (columns.accuracy) names.emplace_back("accuracy");
  for (std::int64_t c = 1; c <= scored(columns); ++c)
    names.insert(names.end(), {fmt::format("dice_{}", c), fmt::format("iou_{}", c)});
  for (const auto* name :
       {"learning_rate", "train_seconds", "evaluate_seconds", "images_per_second", "time_kind"})
    names.emplace_back(name);
  return names;
}

std::vector<std::string> cells_of(const MetricsRow& row, const MetricsColumns& columns) {
  const auto& report = row.report;
  const auto& scores = report.scores;
  const auto number = [](double value) { return fmt::format("{:.9g}", value); };
  const auto score = [&](segmentation::Score value) {
    return value && scores.images > 0 ? number(*value) : "";
  };
  std::vector<std::string> cells = {std::to_string(row.step), std::to_string(report.epoch),
                                    number(report.loss), score(report.validation_loss)};
  if (columns.classes > 0)
    cells.insert(cells.end(), {score(scores.mean_dice), score(scores.mean_iou)});
  if (columns.accuracy) cells.push_back(score(scores.pixel_accuracy));
  for (std::int64_t c = 0; c < scored(columns); ++c) {
    const bool known = c < std::ssize(scores.classes);
    const auto& one =
        known ? scores.classes[static_cast<std::size_t>(c)] : segmentation::ClassScores{};
    cells.insert(cells.end(), {score(one.dice), score(one.iou)});
  }
  for (const double value : {static_cast<double>(row.learning_rate), report.train_time.seconds,
                             report.evaluate_time.seconds, report.images_per_second})
    cells.push_back(number(value));
  cells.emplace_back(to_string(report.train_time.kind));
  return cells;
}

}  // namespace

MetricsColumns columns_of(const RunConfig& config) {
  return {.classes = config.model.maps ? config.model.classes : 0, .accuracy = has_classes(config)};
}

std::string metrics_csv(std::span<const MetricsRow> rows, const MetricsColumns& columns) {
  auto csv = fmt::format("{}\n", fmt::join(header_of(columns), ","));
  for (const auto& row : rows) csv += fmt::format("{}\n", fmt::join(cells_of(row, columns), ","));
  return csv;
}

Scalars scalars_of(const MetricsRow& row, const MetricsColumns& columns) {
  const auto& report = row.report;
  const auto& scores = report.scores;
  Scalars scalars = {{"loss/training", report.loss},
                     {"learning_rate", row.learning_rate},
                     {"images_per_second", report.images_per_second}};
  if (scores.images == 0) return scalars;
  const auto add = [&](std::string name, segmentation::Score score) {
    if (score) scalars.emplace_back(std::move(name), *score);
  };
  scalars.emplace_back("loss/validation", report.validation_loss);
  if (columns.classes > 0) {
    add("dice/mean", scores.mean_dice);
    add("iou/mean", scores.mean_iou);
  }
  if (columns.accuracy) scalars.emplace_back("accuracy", scores.pixel_accuracy);
  for (std::size_t c = 0; c < scores.classes.size(); ++c) {
    add(fmt::format("dice/class_{}", c + 1), scores.classes[c].dice);
    add(fmt::format("iou/class_{}", c + 1), scores.classes[c].iou);
  }
  return scalars;
}

MetricsLog::MetricsLog(std::filesystem::path folder, const MetricsColumns& columns)
    : folder_(std::move(folder)), columns_(columns) {
  OutputLedger own(folder_);
  if (own.lists(kMetricsFile)) return;
  own.write(kMetricsFile, metrics_csv({}, columns_));
}

void MetricsLog::write(std::span<const MetricsRow> rows) {
  write_file_atomically(folder_ / kMetricsFile, metrics_csv(rows, columns_));
  if (!events_) events_.emplace(folder_, rows.back().step);
  events_->write(rows.back().step, scalars_of(rows.back(), columns_));
}

}  // namespace triptych::training
