// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/evaluation_report.h"

#include <fmt/core.h>

#include <vector>

#include "core/base/console.h"
#include "core/base/csv_text.h"
#include "experiments/app/row_report.h"
#include "experiments/page/record.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

using page::Json;
using training::Evaluation;
using training::ImageEvaluation;

constexpr std::int64_t kMostClassesShown = 12;

using page::format_score;
using page::ReportedValues;
using page::values_of;
using segmentation::ClassScores;
using training::ClassEvaluation;

using ClassNames = std::vector<std::string>;

/// The scores of class i + 1.
ReportedValues class_values(const Evaluation& evaluation, const ClassScores& scores,
                            std::size_t i) {
  const auto boundary = evaluation.boundary().of_class(static_cast<std::int64_t>(i) + 1);
  return values_of(scores) +
         values_of(boundary.images > 0 ? std::optional(boundary) : std::nullopt);
}

void print_classes(const Evaluation& evaluation, const ClassNames& names) {
  const auto scores = evaluation.scores();
  const auto means = values_of(scores.means()) + values_of(evaluation.boundary().mean());
  page::TextTable table(page::heads({"class"}, means));
  for (std::size_t i = 0; i < scores.classes.size(); ++i)
    table.add(
        page::cells({class_text(names, i + 1)}, class_values(evaluation, scores.classes[i], i)));
  if (scores.classes.size() > 1) table.add(page::cells({"mean"}, means));
  table.print();
}

void print_confusion(const segmentation::ConfusionMatrix& confusion, const ClassNames& names) {
  if (confusion.classes() > kMostClassesShown) return;
  std::vector<std::string> header = {"pixels of class"};
  for (std::int64_t c = 0; c < confusion.classes(); ++c)
    header.push_back("as " + class_text(names, static_cast<std::size_t>(c)));
  page::TextTable table(header);
  for (std::int64_t truth = 0; truth < confusion.classes(); ++truth) {
    std::vector<std::string> row = {class_text(names, static_cast<std::size_t>(truth))};
    for (std::int64_t c = 0; c < confusion.classes(); ++c)
      row.push_back(std::to_string(confusion.at(truth, c)));
    table.add(std::move(row));
  }
  table.print();
}

Json regions_json(const Evaluation& evaluation) {
  const auto& regions = evaluation.regions();
  if (!regions || regions->images() == 0) return nullptr;
  auto json = to_json(values_of(regions->mean()));
  const auto best = regions->best();
  json["images"] = regions->images();
  json["best"] = {{"v_rand", best.rand},
                  {"v_rand_threshold", best.rand_threshold},
                  {"v_info", best.info},
                  {"v_info_threshold", best.info_threshold}};
  return json;
}

Json classes_json(const Evaluation& evaluation, const ClassNames& names) {
  Json classes = Json::array();
  const auto scores = evaluation.scores();
  for (std::size_t i = 0; i < scores.classes.size(); ++i) {
    Json one = {{"class", i + 1}, {"name", names.empty() ? Json() : Json(names.at(i + 1))}};
    one.update(to_json(class_values(evaluation, scores.classes[i], i)));
    classes.push_back(std::move(one));
  }
  return classes;
}

/// The scores of a class in an image.
ReportedValues class_values(const std::optional<ClassEvaluation>& one) {
  return values_of(one) + values_of(one ? one->boundary : std::nullopt);
}

Json image_json(const ImageEvaluation& image) {
  Json json = {{"name", image.name}};
  json.update(to_json(values_of(image)));
  Json classes = Json::array();
  for (std::size_t i = 0; i < image.classes.size(); ++i) {
    if (!image.classes[i]) continue;
    classes.push_back({{"class", i + 1}});
    classes.back().update(to_json(class_values(image.classes[i])));
  }
  json["classes"] = std::move(classes);
  json["regions"] = image.regions ? to_json(values_of(*image.regions)) : Json();
  return json;
}

Json confusion_json(const segmentation::ConfusionMatrix& confusion) {
  Json rows = Json::array();
  for (std::int64_t truth = 0; truth < confusion.classes(); ++truth) {
    Json row = Json::array();
    for (std::int64_t c = 0; c < confusion.classes(); ++c) row.push_back(confusion.at(truth, c));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json bins_json(const segmentation::Calibration& calibration) {
  Json bins = Json::array();
  for (const auto& bin : calibration.bins()) {
    const auto share = [&](double sum) {
      return bin.pixels > 0 ? Json(sum / static_cast<double>(bin.pixels)) : Json();
    };
    bins.push_back({{"pixels", bin.pixels},
                    {"confidence", share(bin.confidence)},
                    {"right", share(static_cast<double>(bin.right))}});
  }
  return bins;
}

}  // namespace

void print_evaluation(const Evaluation& evaluation, const ClassNames& names) {
  print_classes(evaluation, names);
  print_text("\n");
  print_confusion(evaluation.confusion(), names);
  print_text("\npixel accuracy               {}\n",
             format_score(evaluation.scores().pixel_accuracy));
  print_text("expected calibration error   {}\n",
             format_score(evaluation.calibration().expected_error()));
  print_text("Brier score                  {}\n", format_score(evaluation.calibration().brier()));
  const auto& regions = evaluation.regions();
  if (!regions || regions->images() == 0) return;
  const auto mean = regions->mean();
  const auto best = regions->best();
  print_text("V-Rand                       {} (split {}, merge {}); best {} above {:.1f}\n",
             format_score(mean.rand), format_score(mean.rand_split), format_score(mean.rand_merge),
             format_score(best.rand), best.rand_threshold);
  print_text("V-Info                       {} (split {}, merge {}); best {} above {:.1f}\n",
             format_score(mean.info), format_score(mean.info_split), format_score(mean.info_merge),
             format_score(best.info), best.info_threshold);
}

Json evaluation_json(const Evaluation& evaluation, const ClassNames& names) {
  const auto scores = evaluation.scores();
  Json images = Json::array();
  for (const auto& image : evaluation.images()) images.push_back(image_json(image));
  auto json = to_json(values_of(scores.means()));
  json.erase("images");  // a list below
  json.update({{"pixel_accuracy", scores.pixel_accuracy},
               {"calibration_error", evaluation.calibration().expected_error()},
               {"brier", evaluation.calibration().brier()}});
  json.update(to_json(values_of(evaluation.boundary().mean())));
  json.update({{"classes", classes_json(evaluation, names)},
               {"regions", regions_json(evaluation)},
               {"confusion", confusion_json(evaluation.confusion())},
               {"calibration", bins_json(evaluation.calibration())},
               {"images", std::move(images)}});
  return json;
}

Json judge_run(training::TrainingRun& run, std::size_t count,
               const std::atomic<bool>& interrupted) {
  run.write_masks(count);
  const auto evaluation = run.judge_images(count, interrupted);
  return evaluation ? evaluation_json(*evaluation, class_names_of(run.config())) : Json();
}

std::string images_csv(const Evaluation& evaluation) {
  const bool regions = evaluation.regions().has_value();
  std::string text = "image" + csv_heads(values_of(ImageEvaluation{}));
  for (std::size_t c = 1; c <= evaluation.scores().classes.size(); ++c)
    text += csv_heads(class_values(std::nullopt), fmt::format("_{}", c));
  if (regions) text += csv_heads(values_of(segmentation::RegionScores{}));
  text += '\n';
  for (const auto& image : evaluation.images()) {
    text += csv_text(image.name) + csv_cells(values_of(image));
    for (const auto& one : image.classes) text += csv_cells(class_values(one));
    if (regions) text += csv_cells(values_of(image.regions));
    text += '\n';
  }
  return text;
}

std::string confusion_csv(const segmentation::ConfusionMatrix& confusion) {
  std::string text = "truth";
  for (std::int64_t c = 0; c < confusion.classes(); ++c) text += fmt::format(",{}", c);
  for (std::int64_t truth = 0; truth < confusion.classes(); ++truth) {
    text += fmt::format("\n{}", truth);
    for (std::int64_t c = 0; c < confusion.classes(); ++c)
      text += fmt::format(",{}", confusion.at(truth, c));
  }
  return text + '\n';
}

}  // namespace triptych::app
