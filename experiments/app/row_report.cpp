// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/row_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/base/console.h"
#include "core/base/csv_text.h"
#include "core/base/list_text.h"
#include "experiments/page/text_table.h"
#include "experiments/training/data/labels.h"

namespace triptych::app {
namespace {

using page::Json;
using training::RowEvaluation;
using training::RunConfig;

constexpr std::size_t kMostClassesPrinted = 12;
/// Classes up to which a confusion is written with a line for each, not only for those that occur.
constexpr std::int64_t kMostClassesListed = 1000;

/// Rows and columns of the confusion: all classes, or of very many those that occur.
std::vector<std::int64_t> classes_in(const RunConfig& config, const RowEvaluation& evaluation) {
  std::set<std::int64_t> classes;
  const auto all = std::max<std::int64_t>(2, config.model.classes);
  for (std::int64_t c = 0; c < all && all <= kMostClassesListed; ++c) classes.insert(c);
  for (const auto& [pair, count] : evaluation.confusion())
    classes.insert({pair.first, pair.second});
  return {classes.begin(), classes.end()};
}

std::int64_t count_at(const RowEvaluation& evaluation, std::int64_t truth, std::int64_t predicted) {
  const auto found = evaluation.confusion().find({truth, predicted});
  return found == evaluation.confusion().end() ? 0 : found->second;
}

class Names {
 public:
  explicit Names(const RunConfig& config) : names_(class_names_of(config)) {}

  /// The name or number of the class. Empty for none.
  std::string of(std::int64_t label) const {
    if (label < 0) return {};
    return label < std::ssize(names_) ? names_[static_cast<std::size_t>(label)]
                                      : std::to_string(label);
  }

 private:
  std::vector<std::string> names_;
};

void print_confusion(const RunConfig& config, const RowEvaluation& evaluation) {
  const auto classes = classes_in(config, evaluation);
  if (classes.size() > kMostClassesPrinted) return;
  const Names names(config);
  std::vector<std::string> header = {"class"};
  for (const auto c : classes) header.push_back("as " + names.of(c));
  page::TextTable table(header);
  for (const auto truth : classes) {
    std::vector<std::string> row = {names.of(truth)};
    for (const auto c : classes) row.push_back(std::to_string(count_at(evaluation, truth, c)));
    table.add(std::move(row));
  }
  table.print();
  print_text("\n");
}

/// True when every example has one class.
bool has_one_class(const RowEvaluation& evaluation) {
  return std::ranges::all_of(evaluation.rows(), [](const auto& row) { return row.predicted >= 0; });
}

}  // namespace

std::vector<std::string> class_names_of(const RunConfig& config) {
  const auto& data = config.data;
  if (!data.class_names.empty())
    return segmentation::parse_class_names(data.class_names, config.model.classes);
  const bool folders = !config.model.maps && !data.labels.empty();
  return folders ? split_list(data.labels) : std::vector<std::string>();
}

std::string class_text(const std::vector<std::string>& names, std::size_t label) {
  return label < names.size() ? fmt::format("{} {}", label, names[label]) : std::to_string(label);
}

void print_rows(const RunConfig& config, const RowEvaluation& evaluation) {
  if (!training::has_classes(config)) {
    print_text("mean squared error   {:.6g}\n", evaluation.loss());
    return;
  }
  print_confusion(config, evaluation);
  print_text("accuracy             {:.4f}\n", evaluation.accuracy());
  print_text("cross-entropy        {:.4f}\n", evaluation.loss());
}

Json rows_json(const RunConfig& config, const RowEvaluation& evaluation) {
  const bool classes = training::has_classes(config);
  Json examples = Json::array();
  for (const auto& row : evaluation.rows()) {
    Json one = {{"name", row.name}, {"loss", row.loss}};
    if (classes) {
      one["elements"] = row.counted;
      one["right"] = row.right;
      one["truth"] = row.truth < 0 ? Json() : Json(row.truth);
      one["predicted"] = row.predicted < 0 ? Json() : Json(row.predicted);
      one["probability"] = row.predicted < 0 ? Json() : Json(row.probability);
    }
    examples.push_back(std::move(one));
  }
  Json confusion = Json::array();
  for (const auto& [pair, count] : evaluation.confusion())
    confusion.push_back({{"truth", pair.first}, {"predicted", pair.second}, {"count", count}});
  return {{"accuracy", classes ? Json(evaluation.accuracy()) : Json()},
          {"loss", evaluation.loss()},
          {"class_names", class_names_of(config)},
          {"confusion_counts", std::move(confusion)},
          {"examples", std::move(examples)}};
}

std::string rows_csv(const RunConfig& config, const RowEvaluation& evaluation) {
  const auto *const plain = "example,loss\n", *const tokens = "example,elements,right,loss\n",
                    *const single = "example,truth,predicted,probability,loss\n";
  const bool classes = training::has_classes(config), one = has_one_class(evaluation);
  const Names names(config);
  std::string text = !classes ? plain : one ? single : tokens;
  for (const auto& row : evaluation.rows()) {
    text += csv_text(row.name);
    if (classes && one) {
      text += fmt::format(",{},{},{:.6f}", csv_text(names.of(row.truth)),
                          csv_text(names.of(row.predicted)), row.probability);
    } else if (classes) {
      text += fmt::format(",{},{}", row.counted, row.right);
    }
    text += fmt::format(",{:.9g}\n", row.loss);
  }
  return text;
}

std::string confusion_csv(const RunConfig& config, const RowEvaluation& evaluation) {
  const auto classes = classes_in(config, evaluation);
  const Names names(config);
  std::string text = "truth";
  for (const auto c : classes) text += ',' + csv_text(names.of(c));
  for (const auto truth : classes) {
    text += '\n' + csv_text(names.of(truth));
    for (const auto c : classes) text += fmt::format(",{}", count_at(evaluation, truth, c));
  }
  return text + '\n';
}

}  // namespace triptych::app
