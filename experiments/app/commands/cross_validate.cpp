// `triptych cross-validate`: one training per part of the images. Each part is scored once by a
// model that has not seen it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "core/base/console.h"
#include "core/base/interrupt.h"
#include "core/io/output_ledger.h"
#include "experiments/app/commands.h"
#include "experiments/app/evaluation_report.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/run_page.h"
#include "experiments/app/saved_run.h"
#include "experiments/app/train_options.h"
#include "experiments/app/training_report.h"
#include "experiments/page/record.h"
#include "experiments/page/text_table.h"
#include "experiments/training/best_epoch.h"
#include "experiments/training/run_options.h"

namespace triptych::app {
namespace {

using training::End;
using training::EpochReport;
using training::TrainingRun;

constexpr const char* kFoldsReport = "cross-validation.json";

struct CrossValidationOptions {
  TrainOptions train;
  std::int64_t folds = 5;
};

struct Fold {
  std::int64_t number = 1;
  EpochReport report;  ///< of the saved weights
  page::Json run;
};

std::filesystem::path folder_of(const std::filesystem::path& folder, std::int64_t number) {
  return folder / fmt::format("fold-{}", number);
}

/// The run of a fold: new, or where it was stopped. Throws InvalidArgument when the folder holds
/// another.
TrainingRun open_fold(DeviceSet& machine, const training::RunConfig& config,
                      const std::filesystem::path& folder) {
  if (!training::holds_run(folder)) return {machine, config, folder};
  auto saved = training::load_run(folder, CheckpointAge::Newest);
  say_notes(saved);
  if (!training::is_run_of(saved.config, config)) {
    throw InvalidArgument(fmt::format(
        "\"{}\" holds a run with other options; give those, or another --out", folder.string()));
  }
  training::require_same_numerics(saved.machine, machine.config());
  machine.prefer(saved.machine.kernel_times);
  return {machine, std::move(saved), folder};
}

/// Trains a fold to its end. Nothing when it was stopped.
std::optional<Fold> train_fold(const DeviceSet& machine, TrainingRun& run, const Fold& fold,
                               const std::atomic<bool>& interrupted, std::size_t pictures) {
  Progress progress;
  auto epochs = run.epochs();
  const auto end = run.train(observer_of(run.config(), progress, epochs, true), interrupted);
  if (end == End::Interrupted) return std::nullopt;
  auto evaluation = judge_run(run, pictures, interrupted);
  say_best(run);
  Fold done = fold;
  done.run = run_json(run, machine, epochs, true);
  done.run["evaluation"] = std::move(evaluation);
  const auto best = training::best_epoch(epochs, run.config().keep);
  done.report = best ? epochs[*best] : epochs.back();
  write_run_report(run.folder(), document("train", page::Json::array({done.run})));
  return done;
}

page::ReportedValues scores_of(const Fold& fold) {
  return page::values_of(segmentation::MapScores(fold.report.scores));
}

/// Each score over the folds that have it. The deviation is that of a sample.
struct Spread {
  page::ReportedValues mean = page::values_of(segmentation::MapScores()), deviation = mean;
};

Spread spread_of(const std::vector<Fold>& folds) {
  Spread spread;
  for (std::size_t i = 0; i < spread.mean.size(); ++i) {
    std::vector<double> values;
    for (const auto& fold : folds) {
      const auto scores = scores_of(fold);
      if (!scores[i].value.is_null()) values.push_back(scores[i].value.get<double>());
    }
    if (values.empty()) continue;
    const auto count = static_cast<double>(values.size());
    double mean = 0, squares = 0;
    for (const auto value : values) mean += value / count;
    for (const auto value : values) squares += (value - mean) * (value - mean);
    spread.mean[i].value = mean;
    if (values.size() > 1) spread.deviation[i].value = std::sqrt(squares / (count - 1));
  }
  return spread;
}

page::Json folds_json(const std::vector<Fold>& folds) {
  page::Json list = page::Json::array();
  page::Json summary = page::Json::object();
  for (const auto& fold : folds) {
    list.push_back({{"fold", fold.number},
                    {"validation_images", fold.report.scores.images},
                    {"epoch", fold.report.epoch},
                    {"folder", fold.run.at("folder")},
                    {"weights_sha256", fold.run.at("weights_sha256")}});
    list.back().update(to_json(scores_of(fold)));
  }
  const auto [means, deviations] = spread_of(folds);
  for (std::size_t i = 0; i < means.size(); ++i)
    summary[means[i].field.key] = {{"mean", means[i].value}, {"deviation", deviations[i].value}};
  return {{"folds", std::move(list)}, {"summary", std::move(summary)}};
}

void print(const std::vector<Fold>& folds) {
  const auto [means, deviations] = spread_of(folds);
  page::TextTable table(page::heads({"fold", "images", "epoch"}, means));
  std::int64_t all = 0;
  for (const auto& fold : folds) {
    const auto images = fold.report.scores.images;
    all += images;
    table.add(page::cells({fmt::format("{}", fold.number), fmt::format("{}", images),
                           fmt::format("{}", fold.report.epoch)},
                          scores_of(fold)));
  }
  table.add(page::cells({"mean", fmt::format("{}", all), ""}, means));
  table.add(page::cells({"deviation", "", ""}, deviations));
  table.print();
}

void cross_validate(const CrossValidationOptions& options, Context& context) {
  auto config = options.train.config();
  require_maps(config, "cross-validate");
  config.data.folds = options.folds;
  std::optional<NewRunFolder> made;
  if (options.train.command.out.empty()) made.emplace("cross-validation");
  const std::filesystem::path folder =
      made ? made->path() : std::filesystem::path(options.train.command.out);
  require_outside(folder, config.data);
  // A folder that is not there yet is made by the first fold, when its images are known to do.
  if (std::filesystem::exists(folder)) require_writable(folder / kFoldsReport);
  options.train.print_unasked_data();
  DeviceSet machine(options.train.machine_config());
  std::vector<Fold> folds;
  const InterruptGuard guard;
  for (std::int64_t number = 1; number <= options.folds; ++number) {
    config.data.fold = number - 1;
    auto run = open_fold(machine, config, folder_of(folder, number));
    if (number == 1) say_opening(machine, run);
    say(fmt::format("fold {} of {}", number, options.folds));
    auto fold = train_fold(machine, run, {.number = number, .report = {}, .run = {}},
                           guard.interrupted(), options.train.command.mask_pictures);
    if (!fold) {
      say_note(fmt::format("stopped in fold {} of {}; the same command with --out {} goes on",
                           number, options.folds, folder.string()));
      context.exit_code = kStopped;
      return;
    }
    folds.push_back(std::move(*fold));
  }
  const auto report = document("cross-validate", page::Json::array({folds_json(folds)}));
  write_own_file(folder / kFoldsReport, report.dump(2) + '\n');
  if (context.json) {
    print_json(report);
    return;
  }
  print(folds);
  print_text("runs, their pages and {}: {}\n", kFoldsReport, folder.string());
}

}  // namespace

void describe_cross_validate(Command& command, Context& context) {
  auto options = std::make_shared<CrossValidationOptions>();
  add_run_option(command, "--folds", options->folds);
  options->train.add_repeated_to(command);
  add_run_option(
      command, "--out", options->train.command.out,
      "folder for the runs fold-1, fold-2, … and their scores. Existing runs are resumed");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { cross_validate(*options, context); });
}

}  // namespace triptych::app
