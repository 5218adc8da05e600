// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/training_report.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "core/base/console.h"
#include "core/base/folder.h"
#include "core/base/list_text.h"
#include "core/io/file_descriptor.h"
#include "experiments/app/message.h"
#include "experiments/machines/array_machine.h"
#include "experiments/measure/array_use.h"
#include "experiments/measure/statistics.h"
#include "experiments/page/record.h"
#include "experiments/page/text_table.h"
#include "experiments/training/best_epoch.h"

namespace triptych::app {

using training::DeviceSet;
using training::EpochReport;
using training::TrainingRun;

NewRunFolder::NewRunFolder(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  const auto first = fmt::format("runs/{}-{}", std::filesystem::path(name).stem().string(), stamp);
  path_ = first;
  made_parent_ = ::mkdir(path_.parent_path().c_str(), 0777) == 0;
  make_folder(path_.parent_path());
  for (int copy = 2; ::mkdir(path_.c_str(), 0777) != 0; ++copy) {
    if (errno != EEXIST) internal::throw_errno("make", path_);
    path_ = fmt::format("{}-{}", first, copy);
  }
}

NewRunFolder::~NewRunFolder() {
  ::rmdir(path_.c_str());
  if (made_parent_) ::rmdir(path_.parent_path().c_str());
}

std::string score_text(const EpochReport& report, segmentation::Score score) {
  return page::format_score(report.scores.if_scored(score));
}

std::vector<std::string> quality_heads(const training::RunConfig& config) {
  if (config.model.maps) return page::heads({}, page::values_of(segmentation::MapScores()));
  return {training::has_classes(config) ? "accuracy" : "squared error"};
}

std::vector<std::string> quality_of(const training::RunConfig& config, const EpochReport& report) {
  const auto& scores = report.scores;
  if (config.model.maps) return page::cells({}, page::values_of(segmentation::MapScores(scores)));
  return {score_text(
      report, training::has_classes(config) ? scores.pixel_accuracy : report.validation_loss)};
}

Duration total_time(std::span<const EpochReport> epochs) {
  Duration total;
  for (const auto& report : epochs) {
    total.seconds += report.train_time.seconds;
    total.kind = report.train_time.kind;
  }
  return total;
}

namespace {

void say_epoch(const training::RunConfig& config, const EpochReport& report) {
  const auto heads = quality_heads(config), scores = quality_of(config, report);
  auto text = fmt::format("epoch {:3}  loss {:.4f}", report.epoch, report.loss);
  for (std::size_t i = 0; i < heads.size(); ++i)
    text += fmt::format("  {} {}", heads[i], scores[i]);
  // All steps of an epoch may have run before the run was resumed.
  if (report.train_time.seconds > 0) {
    text += fmt::format("  {:.1f} {}/s ({})", report.images_per_second,
                        config.data.inputs.empty() ? "images" : "examples",
                        to_string(report.train_time.kind));
  }
  say(text);
  const auto pooled = config.model.maps ? fmt::format(", pooled Dice {}",
                                                      score_text(report, report.scores.pooled_dice))
                                        : std::string();
  say_detail(fmt::format("           {} in {}, evaluation in {}; validation loss {}{}",
                         counted(report.steps, "step"),
                         page::format_seconds(report.train_time.seconds),
                         page::format_seconds(report.evaluate_time.seconds),
                         score_text(report, report.validation_loss), pooled));
}

page::Json epochs_json(const TrainingRun& run, const std::vector<EpochReport>& epochs) {
  page::Json list = page::Json::array();
  const bool maps = run.config().model.maps, has_classes = training::has_classes(run.config());
  std::int64_t step = 0;
  for (const auto& report : epochs) {
    step += report.steps;
    // Without validation images there is no score. 0 would look like a bad one.
    const auto score = [&](segmentation::Score value) {
      return page::score_json(report.scores.if_scored(value));
    };
    const auto of_maps = [&](segmentation::Score value) {
      return maps ? score(value) : page::Json();
    };
    const auto& scores = report.scores;
    list.push_back({{"epoch", report.epoch},
                    {"steps", report.steps},
                    {"loss", report.loss},
                    {"dice", of_maps(scores.mean_dice)},
                    {"iou", of_maps(scores.mean_iou)},
                    {"pooled_dice", of_maps(scores.pooled_dice)},
                    {"pixel_error", of_maps(scores.pixel_error)},
                    {"validation_loss", score(report.validation_loss)},
                    {"classes", page::to_json(report.scores.classes)},
                    {"learning_rate", run.learning_rate(std::max<std::int64_t>(1, step) - 1)},
                    {"validation_images", report.scores.images},
                    {"train_time", page::time_json(report.train_time)},
                    {"evaluate_time", page::time_json(report.evaluate_time)},
                    {"images_per_second", report.images_per_second}});
    if (!maps) {
      list.back()["accuracy"] = has_classes ? score(scores.pixel_accuracy) : page::Json();
    }
  }
  return list;
}

std::string images_text(const segmentation::Dataset& dataset) {
  if (dataset.arrays && !dataset.arrays->inputs.empty())
    return counted(std::ssize(dataset.samples), "example");
  if (dataset.samples.empty()) return "no images";
  const auto& first = dataset.samples.front();
  const bool alike = std::ranges::all_of(dataset.samples, [&](const auto& sample) {
    return sample.width == first.width && sample.height == first.height;
  });
  return fmt::format("{} of {}", counted(std::ssize(dataset.samples), "image"),
                     alike ? fmt::format("{} x {}", first.width, first.height) : "several sizes");
}

/// Details of the memory that the plan takes.
void say_memory(const Plan& plan) {
  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  say_detail(fmt::format("{} of a step; {:.1f} MiB of memory for one rank",
                         counted(std::ssize(plan.steps), "node"), mib(plan.total_bytes(0))));
}

}  // namespace

page::Json run_json(TrainingRun& run, const DeviceSet& machine,
                    const std::vector<EpochReport>& epochs, bool finished) {
  const auto& config = run.config();
  const auto best = training::best_epoch(epochs, config.keep);
  return {{"backend", machine.config().backend},
          {"device", machine.device().info().description},
          {"contract", to_string(machine.config().contract)},
          {"threads", machine.threads()},
          {"ranks", machine.config().parallel.ranks},
          {"transport", name_of(machine.config().parallel.transport)},
          {"model", page::Json::parse(training::to_json(config.model))},
          {"config", page::Json::parse(training::to_json(config))},
          {"seed", config.training.seed},
          {"batch", config.training.batch},
          {"optimizer", name_of(config.training.optimizer.kind)},
          {"learning_rate", config.learning_rate},
          {"parameters", run.trainer().parameter_count()},
          {"steps", run.losses().size()},
          {"losses", run.losses()},
          {"epochs", epochs_json(run, epochs)},
          {"best_epoch", best ? page::Json(epochs[*best].epoch) : page::Json()},
          {"time", page::time_json(total_time(epochs))},
          {"weights_sha256", run.trainer().weights_sha256()},
          {"finished", finished},
          {"folder", run.folder().string()},
          {"host", measure::host_json(machine.host_share(run.trainer().plan()))},
          {"plan_memory_mib", static_cast<double>(run.trainer().plan().total_bytes(0)) / 1048576},
          {"peak_memory_mib", measure::peak_memory_mib()}};
}

training::Observer observer_of(const training::RunConfig& config, Progress& progress,
                               std::vector<EpochReport>& epochs, bool speaks) {
  training::Observer observer;
  if (speaks) observer.on_note = [](const std::string& note) { say_note(with_dashes(note)); };
  observer.on_step = [&](const training::StepReport& step) {
    progress.update(step.step, step.total,
                    fmt::format("epoch {} loss {:.4f}", step.epoch, step.loss));
  };
  observer.on_image = [&](std::int64_t judged, std::int64_t images) {
    progress.update(judged, images, "images judged");
  };
  observer.on_epoch = [&, speaks](const EpochReport& report) {
    if (speaks) say_epoch(config, report);
    epochs.push_back(report);
  };
  observer.on_bad_loss = [&](std::int64_t step) {
    say(fmt::format("the loss of step {} is not finite; looking for the first bad node", step));
  };
  return observer;
}

void say_opening(const DeviceSet& machine, TrainingRun& run) {
  const auto& config = run.config();
  const auto& data = run.data();
  auto kind = training::has_classes(config)
                  ? fmt::format("{} classes", std::max<std::int64_t>(2, config.model.classes))
                  : std::string("values");
  if (config.data.inputs.empty())
    kind = fmt::format("{}, {}", counted(config.model.in_channels, "channel"), kind);
  say(fmt::format(
      "{} ({}) to train on, {} to validate; {}, {} parameters; {} of batch {} on {} in {}",
      images_text(data.train), kind, images_text(data.validation), config.model.name,
      run.trainer().parameter_count(), counted(run.total_steps(), "step"), config.training.batch,
      machine.config().backend, to_string(machine.config().contract)));
  if (const auto images = std::ssize(data.train.samples); images < config.training.batch) {
    say_note(fmt::format(
        "the batch of {} is larger than the {} to train on, so each step repeats "
        "some; a smaller --batch trains faster",
        config.training.batch, counted(images, config.data.inputs.empty() ? "image" : "example")));
  }
  say_memory(run.trainer().plan());
  say_note(machines::clock_note(machine.config()));
}

void say_best(const TrainingRun& run) {
  const auto& config = run.config();
  const auto best = training::best_epoch(run.epochs(), config.keep);
  if (!best) return;
  const auto& report = run.epochs()[*best];
  if (run.stopped_early()) {
    say(fmt::format(
        "stopped after epoch {}: no improvement in {}; continue with --resume and a larger "
        "--patience",
        run.epochs().size(), counted(config.patience, "epoch")));
  }
  say(fmt::format("best by {}: epoch {}, {} {}, validation loss {:.4f}, kept in {}",
                  name_of(config.keep), report.epoch, quality_heads(config).front(),
                  quality_of(config, report).front(), report.validation_loss,
                  (run.folder() / training::kBestFolder).string()));
}

}  // namespace triptych::app
