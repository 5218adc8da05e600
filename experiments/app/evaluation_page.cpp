// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/evaluation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "experiments/page/format.h"
#include "experiments/page/record.h"
#include "experiments/training/evaluation.h"

namespace triptych::app {
namespace {

using page::Cell;
using page::JsonView;
using page::Table;

using Fields = std::vector<ReportField>;

/// None where the regions were not scored.
Fields region_fields(const JsonView& evaluation) {
  return evaluation["regions"].null() ? Fields() : page::fields_of<segmentation::RegionScores>();
}

/// Scores of all images and classes together.
void write_figures(page::Page& page, const JsonView& evaluation, const ScoredImages& of) {
  const auto images = page::fields_of<training::ImageEvaluation>();
  const auto fields = std::span(images).subspan(3);  // the Dice is that of the classes
  const auto regions = region_fields(evaluation);
  auto table = page::table_of(of.id + "figures", fmt::format("Scores of {}", of.name), {}, fields);
  page::add_columns(table, regions);
  table.rows.push_back(
      page::cells_of(page::cells_of({}, evaluation, fields), evaluation["regions"], regions));
  page.table(table);
}

void write_confusion(page::Page& page, const JsonView& evaluation, const ScoredImages& of) {
  Table table{.id = of.id + "confusion",
              .caption = fmt::format("Pixels of each class, by prediction, in {}", of.name)};
  table.columns = {"class"};
  std::size_t label = 0;
  for (const auto& row : evaluation["confusion"].items()) {
    table.columns.push_back(fmt::format("as {}", label));
    std::vector<Cell> cells = {page::text_cell(std::to_string(label++))};
    for (const auto& pixels : row.items()) cells.push_back(page::number_cell(pixels));
    table.rows.push_back(std::move(cells));
  }
  if (!table.rows.empty()) page.table(table);
}

void write_images(page::Page& page, const JsonView& evaluation, const ScoredImages& of) {
  const auto fields = page::fields_of<training::ImageEvaluation>();
  const auto regions = region_fields(evaluation);
  auto table = page::table_of(of.id + "images", fmt::format("Scores of each of {}", of.name),
                              {"image"}, fields);
  page::add_columns(table, regions);
  for (const auto& image : evaluation["images"].items()) {
    const auto name = page::text_cell(image["name"].text());
    table.rows.push_back(
        page::cells_of(page::cells_of({name}, image, fields), image["regions"], regions));
  }
  if (!table.rows.empty()) page.table(table);
}

/// How often predictions of a confidence are right.
void write_calibration(page::Page& page, const JsonView& evaluation, const ScoredImages& of) {
  Table table{.id = of.id + "calibration",
              .caption = fmt::format(
                  "Confidence of the predictions, and the share that is right, in {}", of.name),
              .columns = {"confidence", "pixels", "mean confidence", "right"}};
  const auto bins = evaluation["calibration"].items();
  for (std::size_t i = 0; i < bins.size(); ++i) {
    if (!(bins[i]["pixels"].number() > 0)) continue;
    const auto percent = [&](std::size_t bin) {
      return 100 * static_cast<double>(bin) / static_cast<double>(bins.size());
    };
    table.rows.push_back(
        {page::text_cell(fmt::format("{:.0f} to {:.0f} %", percent(i), percent(i + 1))),
         page::number_cell(bins[i]["pixels"]), page::number_cell(bins[i]["confidence"], "%"),
         page::number_cell(bins[i]["right"], "%")});
  }
  if (!table.rows.empty()) page.table(table);
}

/// Dice of the image, or NaN.
double dice_of(const JsonView& evaluation, const std::string& name) {
  for (const auto& image : evaluation["images"].items())
    if (image["name"].text() == name) return image["dice"].number();
  return std::numeric_limits<double>::quiet_NaN();
}

bool has_image(const JsonView& evaluation, const std::string& name) {
  const auto images = evaluation["images"].items();
  return std::ranges::any_of(images,
                             [&](const JsonView& image) { return image["name"].text() == name; });
}

}  // namespace

void write_scores(page::Page& page, const JsonView& evaluation, const ScoredImages& of) {
  write_figures(page, evaluation, of);
  write_confusion(page, evaluation, of);
  write_calibration(page, evaluation, of);
  write_images(page, evaluation, of);
}

void write_pictures(page::Page& page, const JsonView& evaluation, const ScoredImages& of,
                    const std::map<std::string, std::string>& pictures) {
  std::vector<std::pair<double, std::string>> order;  // images without a Dice come last
  for (const auto& [name, png] : pictures) {
    if (!has_image(evaluation, name)) continue;
    const auto dice = dice_of(evaluation, name);
    order.emplace_back(std::isnan(dice) ? 2 : dice, name);
  }
  if (order.empty()) return;
  std::ranges::sort(order);
  std::string html = fmt::format(
      "<div class=\"masks\" role=\"region\" tabindex=\"0\" aria-label=\"Pictures of {}\"><table>\n"
      "<thead><tr><th scope=\"col\">image, Dice</th><th scope=\"col\">input, truth, prediction "
      "(red: too much, blue: missed, yellow: another class)</th></tr></thead>\n<tbody>\n",
      page::escape(of.name));
  for (const auto& [dice, name] : order) {
    html += fmt::format(
        "<tr><th scope=\"row\">{0}{2}</th><td><img alt=\"input, truth and prediction of {0}\" "
        "style=\"width:auto;max-width:100%\" src=\"data:image/png;base64,{1}\"></td></tr>\n",
        page::escape(name), page::escape(pictures.at(name)),
        dice > 1 ? "" : fmt::format(", {:.4f}", dice));
  }
  page.html(html + "</tbody></table></div>\n");
}

}  // namespace triptych::app
