// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/evaluation_report.h"

#include <fmt/core.h>

#include <vector>

#include "core/base/console.h"
#include "core/base/csv_text.h"
#include "experiments/app/row_report.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

using page::Json;
using training::Evaluation;
using training::ImageEvaluation;

constexpr std::int64_t kMostClassesShown = 12;

using page::format_score;
using page::score_json;

/// The score as a field of CSV. Empty where there is none.
std::string field(segmentation::Score score) {
  return score ? fmt::format("{:.6f}", *score) : std::string();
}

using ClassNames = std::vector<std::string>;

void print_classes(const Evaluation& evaluation, const ClassNames& names) {
  page::TextTable table({"class", "images", "Dice", "IoU", "pooled Dice", "pooled IoU",
                         "boundary F1", "Hausdorff 95"});
  const auto scores = evaluation.scores();
  for (std::size_t i = 0; i < scores.classes.size(); ++i) {
    const auto& one = scores.classes[i];
    const auto boundary = evaluation.boundary().of_class(static_cast<std::int64_t>(i) + 1);
    table.add({class_text(names, i + 1), std::to_string(one.images), format_score(one.dice),
               format_score(one.iou), format_score(one.pooled_dice), format_score(one.pooled_iou),
               boundary.images > 0 ? format_score(boundary.f1) : "-",
               boundary.images > 0 ? fmt::format("{:.2f}", boundary.hausdorff95) : "-"});
  }
  if (scores.classes.size() > 1) {
    const auto boundary = evaluation.boundary().mean();
    table.add({"mean", std::to_string(scores.images), format_score(scores.mean_dice),
               format_score(scores.mean_iou), format_score(scores.pooled_dice),
               format_score(scores.pooled_iou), boundary ? format_score(boundary->f1) : "-",
               boundary ? fmt::format("{:.2f}", boundary->hausdorff95) : "-"});
  }
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

Json regions_json(const segmentation::RegionScores& scores) {
  return {{"v_rand", scores.rand},
          {"v_rand_split", scores.rand_split},
          {"v_rand_merge", scores.rand_merge},
          {"v_info", scores.info},
          {"v_info_split", scores.info_split},
          {"v_info_merge", scores.info_merge}};
}

Json regions_json(const Evaluation& evaluation) {
  const auto& regions = evaluation.regions();
  if (!regions || regions->images() == 0) return nullptr;
  auto json = regions_json(regions->mean());
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
    const auto& one = scores.classes[i];
    const auto boundary = evaluation.boundary().of_class(static_cast<std::int64_t>(i) + 1);
    const auto of_boundary = [&](double value) {
      return boundary.images > 0 ? Json(value) : Json();
    };
    classes.push_back({{"class", i + 1},
                       {"name", names.empty() ? Json() : Json(names.at(i + 1))},
                       {"images", one.images},
                       {"dice", score_json(one.dice)},
                       {"iou", score_json(one.iou)},
                       {"pooled_dice", score_json(one.pooled_dice)},
                       {"pooled_iou", score_json(one.pooled_iou)},
                       {"boundary_f1", of_boundary(boundary.f1)},
                       {"hausdorff95", of_boundary(boundary.hausdorff95)}});
  }
  return classes;
}

Json image_json(const ImageEvaluation& image) {
  Json classes = Json::array();
  for (std::size_t i = 0; i < image.classes.size(); ++i) {
    const auto& one = image.classes[i];
    if (!one) continue;
    const bool bounded = one->boundary.has_value();
    classes.push_back({{"class", i + 1},
                       {"dice", one->overlap.dice()},
                       {"iou", one->overlap.iou()},
                       {"boundary_f1", bounded ? Json(one->boundary->f1) : Json()},
                       {"hausdorff95", bounded ? Json(one->boundary->hausdorff95) : Json()}});
  }
  return {{"name", image.name},
          {"width", image.size.width},
          {"height", image.size.height},
          {"dice", score_json(image.mean_dice())},
          {"pixel_accuracy", image.pixel_accuracy},
          {"calibration_error", image.calibration_error},
          {"brier", image.brier},
          {"classes", std::move(classes)},
          {"regions", image.regions ? regions_json(*image.regions) : Json()}};
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
  const auto boundary = evaluation.boundary().mean();
  Json images = Json::array();
  for (const auto& image : evaluation.images()) images.push_back(image_json(image));
  return {{"dice", score_json(scores.mean_dice)},
          {"iou", score_json(scores.mean_iou)},
          {"pooled_dice", score_json(scores.pooled_dice)},
          {"pooled_iou", score_json(scores.pooled_iou)},
          {"pixel_accuracy", scores.pixel_accuracy},
          {"calibration_error", evaluation.calibration().expected_error()},
          {"brier", evaluation.calibration().brier()},
          {"boundary_f1", boundary ? Json(boundary->f1) : Json()},
          {"hausdorff95", boundary ? Json(boundary->hausdorff95) : Json()},
          {"classes", classes_json(evaluation, names)},
          {"regions", regions_json(evaluation)},
          {"confusion", confusion_json(evaluation.confusion())},
          {"calibration", bins_json(evaluation.calibration())},
          {"images", std::move(images)}};
}

Json judge_run(training::TrainingRun& run, std::size_t count,
               const std::atomic<bool>& interrupted) {
  run.write_masks(count);
  const auto evaluation = run.judge_images(count, interrupted);
  return evaluation ? evaluation_json(*evaluation, class_names_of(run.config())) : Json();
}

std::string images_csv(const Evaluation& evaluation) {
  const bool regions = evaluation.regions().has_value();
  std::string text = "image,width,height,dice,pixel_accuracy,calibration_error,brier";
  for (std::size_t c = 1; c <= evaluation.scores().classes.size(); ++c)
    text += fmt::format(",dice_{0},iou_{0},boundary_f1_{0},hausdorff95_{0}", c);
  if (regions) text += ",v_rand,v_rand_split,v_rand_merge,v_info,v_info_split,v_info_merge";
  text += '\n';
  for (const auto& image : evaluation.images()) {
    text += fmt::format("{},{},{},{},{:.6f},{:.6f},{:.6f}", csv_text(image.name), image.size.width,
                        image.size.height, field(image.mean_dice()), image.pixel_accuracy,
                        image.calibration_error, image.brier);
    for (const auto& one : image.classes) {
      text += one ? fmt::format(",{:.6f},{:.6f}", one->overlap.dice(), one->overlap.iou())
                  : std::string(",,");
      text += one && one->boundary
                  ? fmt::format(",{:.6f},{:.6f}", one->boundary->f1, one->boundary->hausdorff95)
                  : std::string(",,");
    }
    if (regions && image.regions) {
      const auto& r = *image.regions;
      text += fmt::format(",{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f}", r.rand, r.rand_split,
                          r.rand_merge, r.info, r.info_split, r.info_merge);
    } else if (regions) {
      text += ",,,,,,";
    }
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
