// `triptych train`: the same model, seed and data on one machine or on several, one after another.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <ctime>

#include "backends/all_backends.h"
#include "core/io/atomic_file.h"
#include "experiments/cli/commands.h"
#include "experiments/cli/output.h"
#include "experiments/cli/progress.h"
#include "experiments/cli/statistics.h"
#include "experiments/training/training_run.h"

namespace triptych::cli {
namespace {

using training::End;
using training::EpochReport;
using training::RunConfig;
using training::TrainingRun;

struct TrainOptions {
  ModelOptions model;
  MachineOptions machine;
  RunConfig run;
  std::string optimizer = "adam";
  std::string loss = "cross-entropy";
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> steps;
  std::string out;
  std::string resume;
  std::size_t mask_count = 4;
};

std::atomic<bool> interrupted = false;  // set by the signal handler

/// While it lives, Ctrl-C and SIGTERM only set `interrupted`.
class InterruptGuard {
 public:
  InterruptGuard() {
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = SA_RESETHAND;  // a second Ctrl-C ends the program at once
    sigaction(SIGINT, &action, &old_interrupt_);
    sigaction(SIGTERM, &action, &old_terminate_);
  }
  ~InterruptGuard() {
    sigaction(SIGINT, &old_interrupt_, nullptr);
    sigaction(SIGTERM, &old_terminate_, nullptr);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_interrupt_ = {};
  struct sigaction old_terminate_ = {};
};

std::string default_folder(const std::string& model) {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  return fmt::format("runs/{}-{}", model, stamp);
}

/// The backends asked for: a comma list, or "all" for every one that is available here.
std::vector<std::string> backend_names(const std::string& text) {
  if (text != "all") return CLI::detail::split(text, ',');
  std::vector<std::string> names;
  for (const Backend* backend : all_backends()) {
    if (backend->availability().available) names.emplace_back(backend->name());
  }
  return names;
}

void print_epoch(const EpochReport& report) {
  fmt::print(
      stderr,
      "epoch {:3}  loss {:.4f}  Dice {:.4f}  IoU {:.4f}  pixel error {:.4f}  {:.1f} images/s "
      "({})\n",
      report.epoch, report.loss, report.scores.mean_dice, report.scores.mean_iou,
      report.scores.pixel_error, report.images_per_second, to_string(report.train_time.kind));
}

Json epochs_json(const std::vector<EpochReport>& epochs) {
  Json list = Json::array();
  for (const auto& report : epochs) {
    list.push_back({{"epoch", report.epoch},
                    {"steps", report.steps},
                    {"loss", report.loss},
                    {"dice", report.scores.mean_dice},
                    {"iou", report.scores.mean_iou},
                    {"pooled_dice", report.scores.pooled_dice},
                    {"pixel_error", report.scores.pixel_error},
                    {"validation_images", report.scores.images},
                    {"train_time", time_json(report.train_time)},
                    {"evaluate_time", time_json(report.evaluate_time)},
                    {"images_per_second", report.images_per_second}});
  }
  return list;
}

Duration total_time(const std::vector<EpochReport>& epochs) {
  Duration total;
  for (const auto& report : epochs) {
    total.seconds += report.train_time.seconds;
    total.kind = report.train_time.kind;
  }
  return total;
}

/// The outcome on one machine.
struct Outcome {
  Json json;
  End end = End::Finished;
  std::vector<std::string> row;
};

Outcome describe(TrainingRun& run, const Machine& machine, const std::vector<EpochReport>& epochs,
                 End end) {
  const auto& config = run.config();
  const auto time = total_time(epochs);
  Outcome outcome;
  outcome.end = end;
  const auto contract = to_string(machine.config().contract);
  const auto hash = run.trainer().weights_sha256();
  outcome.json = {
      {"backend", machine.config().backend},
      {"device", machine.device().info().description},
      {"contract", contract},
      {"threads", machine.threads()},
      {"model", Json::parse(training::to_json(config.model))},
      {"seed", config.training.seed},
      {"batch", config.training.batch},
      {"optimizer", to_string(config.training.optimizer.kind)},
      {"learning_rate", config.learning_rate},
      {"parameters", run.trainer().parameter_count()},
      {"steps", run.losses().size()},
      {"losses", run.losses()},
      {"epochs", epochs_json(epochs)},
      {"time", time_json(time)},
      {"weights_sha256", hash},
      {"finished", end == End::Finished},
      {"folder", run.folder().string()},
      {"plan_memory_mib", static_cast<double>(run.trainer().plan().total_bytes(0)) / 1048576},
      {"peak_memory_mib", peak_memory_mib()}};
  const auto last = epochs.empty() ? EpochReport{} : epochs.back();
  outcome.row = {machine.config().backend,
                 std::string(contract),
                 fmt::format("{}", run.losses().size()),
                 fmt::format("{:.4f}", run.losses().empty() ? 0.0F : run.losses().front()),
                 fmt::format("{:.4f}", run.losses().empty() ? 0.0F : run.losses().back()),
                 fmt::format("{:.4f}", last.scores.mean_dice),
                 fmt::format("{:.4f}", last.scores.mean_iou),
                 fmt::format("{:.4f}", last.scores.pixel_error),
                 format_seconds(time.seconds),
                 std::string(to_string(time.kind)),
                 hash.substr(0, 12)};
  return outcome;
}

Outcome train_on(const Machine& machine, TrainingRun& run, const TrainOptions& options) {
  Progress progress(false);
  std::vector<EpochReport> epochs = run.epochs();
  training::Observer observer;
  observer.on_step = [&](const training::StepReport& step) {
    progress.update(step.step, step.total,
                    fmt::format("epoch {} loss {:.4f}", step.epoch, step.loss));
  };
  observer.on_epoch = [&](const EpochReport& report) {
    progress.clear();
    print_epoch(report);
    epochs.push_back(report);
  };
  const InterruptGuard guard;
  const auto goal = options.epochs.value_or(run.config().epochs);
  const End end = run.train(goal, options.steps, observer, interrupted);
  progress.clear();
  if (end == End::Interrupted) {
    fmt::print(stderr, "stopped after step {}; go on with: triptych train --resume {}\n",
               run.losses().size(), run.folder().string());
  } else {
    run.write_masks(options.mask_count);
  }
  return describe(run, machine, epochs, end);
}

Outcome train_new(const TrainOptions& options, const std::string& backend,
                  const std::filesystem::path& folder) {
  MachineOptions machine_options = options.machine;
  machine_options.backend = backend;
  const Machine machine(machine_options.config());
  RunConfig config = options.run;
  config.model = options.model.config();
  config.training.optimizer.kind = optimizer_from_string(options.optimizer);
  config.training.loss = loss_from_string(options.loss);
  config.epochs = options.epochs.value_or(config.epochs);
  TrainingRun run(machine, config, folder);
  return train_on(machine, run, options);
}

void train(const TrainOptions& options, Context& context) {
  std::vector<Outcome> outcomes;
  std::filesystem::path folder = options.resume;
  if (!options.resume.empty()) {
    const Machine machine(options.machine.config());
    const auto run = TrainingRun::resume(machine, folder);
    outcomes.push_back(train_on(machine, *run, options));
  } else {
    folder = options.out.empty() ? default_folder(options.model.model) : options.out;
    const auto backends = backend_names(options.machine.backend);
    for (const auto& backend : backends) {
      const auto own = backends.size() == 1 ? folder : folder / backend;
      outcomes.push_back(train_new(options, backend, own));
      if (outcomes.back().end == End::Interrupted) break;
    }
  }
  Json results = Json::array();
  Table table({"machine", "contract", "steps", "first loss", "last loss", "Dice", "IoU",
               "pixel error", "time", "kind", "weights"});
  for (const auto& outcome : outcomes) {
    results.push_back(outcome.json);
    table.add(outcome.row);
    if (outcome.end == End::Interrupted) context.exit_code = 128 + SIGINT;
  }
  const auto report = document("train", std::move(results));
  write_file_atomically(folder / "report.json", report.dump(2) + "\n");
  if (context.json) {
    fmt::print("{}\n", report.dump(2));
    return;
  }
  table.print();
  fmt::print("losses, checkpoint, masks (input, truth, prediction) and report: {}\n",
             folder.string());
}

void add_data_options(CLI::App& command, training::DataConfig& data) {
  command
      .add_option("--data", data.source,
                  "folder with images/*.png and masks/*.png, or \"synthetic\"")
      ->capture_default_str();
  command.add_option("--images", data.images, "folder of images, instead of DATA/images");
  command.add_option("--masks", data.masks, "folder of masks, instead of DATA/masks");
  command.add_option("--list", data.list, "CSV with columns id and split: which images to use");
  command.add_option("--train-split", data.train_split, "name in the list's column split")
      ->capture_default_str();
  command
      .add_option("--validation-split", data.validation_split, "name in the list's column split")
      ->capture_default_str();
  command
      .add_option("--validation", data.validation_fraction,
                  "share of images that validate when the list does not say")
      ->check(CLI::Range(0.0, 0.95))
      ->capture_default_str();
  command.add_flag("--invert", data.invert, "the target is what the mask leaves dark");
  command.add_option("--synthetic-images", data.synthetic_images, "images to generate")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str();
}

void add_optimizer_options(CLI::App& command, TrainOptions& options) {
  auto& run = options.run;
  command.add_option("--optimizer", options.optimizer, "sgd, adam or adamw")->capture_default_str();
  command.add_option("--lr", run.learning_rate, "learning rate")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--momentum", run.training.optimizer.momentum, "of sgd")
      ->capture_default_str();
  command.add_option("--weight-decay", run.training.optimizer.weight_decay)->capture_default_str();
  command.add_option("--loss", options.loss, "cross-entropy or dice")->capture_default_str();
  command
      .add_option("--augmentation", run.augmentation,
                  "none, flips (and transposition), or all (rotation, elastic deformation)")
      ->capture_default_str();
  command
      .add_option("--drawing", run.drawing,
                  "epochs (each image once) or replacement (any image each time)")
      ->capture_default_str();
}

void add_run_options(CLI::App& command, TrainOptions& options) {
  auto& run = options.run;
  command.add_option("--epochs", options.epochs, "epochs in all (default 10)")
      ->check(CLI::Range(1, 1000000));
  command.add_option("--steps", options.steps, "stop after this many optimiser steps in all")
      ->check(CLI::Range(1, 1000000000));
  command
      .add_option("--steps-per-epoch", run.steps_per_epoch,
                  "0: as many as cover the training images once")
      ->check(CLI::Range(0, 1000000000));
  command.add_option("--batch", run.training.batch, "images per step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.add_option("--seed", run.training.seed, "of weights, data order and augmentation")
      ->capture_default_str();
  command.add_option("--memory-limit", run.memory_limit_mib,
                     "MiB of activations; recompute cheap ones to stay below");
  command.add_option("--tile", run.tile, "side of evaluation tiles; 0: chosen by the model");
  command.add_option("--margin", run.margin, "overlap of evaluation tiles; -1: a fourth");
  command.add_option("--mask-pictures", options.mask_count, "validation pictures to write")
      ->capture_default_str();
  command.add_option("--out", options.out, "run folder (default runs/MODEL-DATE)");
  command.add_option("--resume", options.resume, "go on with the run in this folder");
}

}  // namespace

void add_train_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<TrainOptions>();
  auto* command = app.add_subcommand("train", "Train a model on images and masks");
  options->model.add_to(*command);
  options->machine.add_to(*command);
  add_data_options(*command, options->run.data);
  add_optimizer_options(*command, *options);
  add_run_options(*command, *options);
  command->add_flag("--json", context.json, "print JSON");
  command->callback([options, &context] { train(*options, context); });
}

}  // namespace triptych::cli
