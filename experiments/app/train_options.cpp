// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/train_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "core/base/file_text.h"
#include "core/base/list_text.h"
#include "core/base/speech.h"
#include "core/io/input_file.h"
#include "experiments/app/array_options.h"
#include "experiments/training/data/dataset.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_arrays.h"
#include "experiments/training/run_options.h"
#include "parallel/comm/mpi_session.h"

namespace triptych::app {

using namespace training::limits;

namespace {

std::string problem_of_augmentation(const std::string& text) {
  try {
    training::Augmentation::from_text(text);
    return {};
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

}  // namespace

void TrainOptions::add_data_options(Command& command) {
  auto& data = run.data;
  command
      .add_option(
          "--data", data.source,
          "folder with images/ and masks/ of PNG, TIFF or JPEG files, or, of a network that "
          "tells images apart, with one folder per class; or \"synthetic\"")
      .capture_default_str();
  if (model.takes_arrays) add_array_options(command, data);
  command.add_option("--images", data.images, "folder of images, instead of DATA/images");
  command.add_option("--masks", data.masks, "folder of masks, instead of DATA/masks");
  command.add_option("--mask-pattern", data.mask_pattern,
                     "names of masks, as {name}_mask.tif; without it those of the images");
  command.add_option("--list", data.list,
                     "CSV: which images to use (column id, image, name or file), perhaps their "
                     "split (or set, subset) and mask");
  command.add_option("--train-split", data.train_split, "name in the list's column split")
      .only_with("--list")
      .capture_default_str();
  command.add_option("--validation-split", data.validation_split, "name in the list's column split")
      .only_with("--list")
      .capture_default_str();
  if (takes_share_) {
    command
        .add_option("--validation", data.validation_fraction,
                    "share of images that validate when the list does not say")
        .check(within(kValidationFraction))
        .capture_default_str();
  }
  command.add_option("--labels", data.labels,
                     "values of masks by class, as 0,128,255; or above-half, below-half, instances "
                     "(all but 0 is the target); without it what the masks' values suggest");
  command
      .add_option("--ignore-label", data.ignore_label,
                  "value of masks whose pixels neither train nor count; -1: none")
      .check(within(kMaskValue))
      .capture_default_str();
  command.add_option("--class-names", data.class_names,
                     "of class 0, 1, …, as background,nucleus, or a file with one on each line");
  command
      .add_option("--normalize", data.normalize,
                  "numbers by which each channel is brought to one scale: dataset (mean and "
                  "deviation of the training images), image (of each image itself) or percentiles "
                  "(1 and 99.8 of each image become 0 and 1)")
      .capture_default_str();
  command
      .add_option(
          "--cache", data.cache_mib,
          "most MiB of images in memory, of each process; the others are read when they are "
          "drawn; 0: half of what is available")
      .check(within(kMemoryMib))
      .capture_default_str();
  command.add_flag("--invert", data.invert, "the target is what the mask leaves dark")
      .not_with("--labels");
  command.add_option("--synthetic-images", data.synthetic_images, "images to generate")
      .check(within(kSyntheticImages))
      .only_with("--data", {"synthetic"})
      .not_with("--images")
      .not_with("--masks")
      .capture_default_str();
}

void TrainOptions::add_rate_options(Command& command) {
  command.add_option("--lr", run.learning_rate, "learning rate")
      .check(within(kLearningRate))
      .capture_default_str();
  command.add_option("--schedule", run.schedule, "of the learning rate: constant or cosine")
      .capture_default_str();
  command
      .add_option("--schedule-steps", run.schedule_steps, "length of the cosine; 0: the whole run")
      .check(within(kSteps))
      .only_with("--schedule", {"cosine"})
      .capture_default_str();
  command
      .add_option(
          "--warmup", run.warmup,
          "first steps, in which the learning rate rises evenly; the cosine comes after them")
      .check(within(kSteps))
      .capture_default_str();
}

void TrainOptions::add_optimizer_options(Command& command) {
  command.add_option("--optimizer", run.training.optimizer.kind, "how gradients update the weights")
      .capture_default_str();
  command.add_option("--momentum", run.training.optimizer.momentum, "of sgd")
      .check(within(kMomentum))
      .only_with("--optimizer", {"sgd"})
      .capture_default_str();
  command.add_option("--weight-decay", run.training.optimizer.weight_decay, "of every optimizer")
      .check(within(kWeightDecay))
      .capture_default_str();
  command
      .add_option("--loss", run.training.loss,
                  "what training makes small; mean-squared-error is for values, not classes")
      .capture_default_str();
  command.add_option("--class-weights", run.weights.classes,
                     "of class 0, 1, … in the loss, as 1,4; or balanced, by their shares");
  command
      .add_option(
          "--border-weight", run.weights.border,
          "most that background between two objects gains in the loss; U-Net's paper has 10")
      .check(within(kBorderWeight))
      .capture_default_str();
  command.add_option("--border-sigma", run.weights.border_sigma, "how far that reaches, in pixels")
      .check(within(kBorderSigma))
      .only_with("--border-weight")
      .capture_default_str();
  command
      .add_option(
          "--augmentation", augmentation,
          "none, flips (and transposition), all (flips,rotate,elastic), strong (every "
          "change), or a list of flips, rotate, elastic, scale, blur, brightness, contrast, "
          "gamma, noise; without it none of images that have one class")
      .check({.description = {}, .problem = problem_of_augmentation})
      .capture_default_str();
  command
      .add_option("--drawing", run.drawing,
                  "epochs (each image once) or replacement (any image each time)")
      .capture_default_str();
}

void TrainOptions::add_length_options(Command& command) {
  command.add_option("--epochs", epochs, "epochs in all (default 10)")
      .check(whole_from(1, kEpochs.high));
  command
      .add_option("--steps-per-epoch", run.steps_per_epoch,
                  "0: as many whole batches as the training images fill, at least one")
      .check(within(kSteps))
      .capture_default_str();
}

void TrainOptions::add_step_work_options(Command& command) {
  command.add_option("--batch", run.training.batch, "images per step")
      .check(within(kBatch))
      .capture_default_str();
  command.add_option("--seed", run.training.seed, "of weights, data order and augmentation")
      .check(within(kSeed))
      .capture_default_str();
  command
      .add_option("--memory-limit", run.memory_limit_mib,
                  "MiB of activations, 0: none; recompute cheap ones to stay below")
      .check(within(kMemoryMib))
      .capture_default_str();
}

void TrainOptions::add_step_options(Command& command) {
  command.add_option("--steps", steps, "optimiser steps in all; without --epochs no other limit")
      .check(whole_from(1, kSteps.high));
  command
      .add_option("--accumulate", run.accumulate,
                  "micro-batches that each rank cuts its share of --batch into, one after another "
                  "in the memory of one")
      .check(within(kAccumulate))
      .capture_default_str();
}

void TrainOptions::add_evaluation_options(Command& command) {
  command.add_option("--tile", run.tile, "side of evaluation tiles; 0: chosen by the model")
      .check(within(kTile))
      .capture_default_str();
  command.add_option("--margin", run.margin, "overlap of evaluation tiles; -1: a fourth")
      .check(within(kMargin))
      .capture_default_str();
  command
      .add_option("--statistics-batches", run.statistics_batches,
                  "training batches from which evaluations and checkpoints estimate the statistics "
                  "of batch normalisation anew; 0: training's own")
      .check(within(kStatisticsBatches))
      .capture_default_str();
  command.add_option("--mask-pictures", mask_count, "validation pictures to write")
      .check(whole_from(0, 1000000))
      .capture_default_str();
}

void TrainOptions::add_keeping_options(Command& command) {
  command.add_option("--init", run.init,
                     "begin with the weights of a run folder or of a safetensors file");
  command.add_option("--init-names", run.init_names, "JSON: names here, and names in --init")
      .only_with("--init");
  command.add_option("--init-skip", init_skip, "names of weights that begin anew, as head*,up0.*")
      .only_with("--init");
  command
      .add_option("--keep", run.keep,
                  "keep also the weights with the best validation, by dice or loss, in OUT/best")
      .capture_default_str();
  command
      .add_option("--patience", run.patience,
                  "end the run after so many epochs that were no better; 0: never")
      .check(within(kEpochs))
      .only_with("--keep", {"dice", "loss"})
      .capture_default_str();
}

void TrainOptions::add_folder_options(Command& command) {
  command.add_option("--out", out, "run folder (default runs/MODEL-DATE)").output_folder();
  command.add_option("--resume", resume, "go on with the run in this folder").output_folder();
  command
      .add_option("--checkpoint-every", run.checkpoint_every,
                  "steps between checkpoints; 0: only at the end of epochs")
      .check(within(kSteps))
      .capture_default_str();
  command.add_flag("--previous", previous, "resume from the checkpoint before the newest")
      .only_with("--resume");
}

void TrainOptions::take_processes(training::ParallelConfig& config) const {
  if (config.transport != training::Transport::Mpi) return;
  const int started = parallel::MpiSession::of_process().world_size();
  if (given("--ranks") && parallel.ranks != started) {
    throw InvalidArgument(
        fmt::format("--ranks {0}, but {1} processes were started; leave out --ranks, or start as "
                    "many: triptych launch -n {0} train …",
                    parallel.ranks, started));
  }
  config.ranks = started;
}

training::ExecutionConfig TrainOptions::machine_config() const {
  auto config = asked_machine();
  take_processes(config.parallel);
  config.threads = threads_per_rank(config.parallel, machine.threads);
  return config;
}

void TrainOptions::add_to(Command& command) {
  model.takes_arrays = true;
  add_experiment_to(command);
  command.begin_group("Length of the run");
  add_step_options(command);
  command.begin_group("What is kept, and going on");
  add_folder_options(command);
  add_keeping_options(command);
  command.begin_group("Machine");
  machine.add_to(command);
  command.begin_group("Ranks");
  add_parallel_options(command, parallel);
  command
      .add_option("--replay", replay,
                  "a run whose updates.csv says in which order asynchronous ranks update")
      .only_with("--parallel", {"ps-async*", "local-sgd-async*"});
  command.begin_group();
  command.fits_later_with("--resume");
}

void TrainOptions::add_repeated_to(Command& command) {
  takes_share_ = false;
  add_experiment_to(command);
  command.begin_group("Length of the run");
  add_step_options(command);
  command.begin_group("What is kept");
  add_keeping_options(command);
  command.begin_group("Machine");
  machine.add_to(command);
  command.begin_group();
}

void TrainOptions::add_experiment_to(Command& command) {
  add_trial_to(command);
  command.begin_group("Training");
  add_rate_options(command);
  command.begin_group("Length of the run");
  add_length_options(command);
  command.begin_group("Evaluation");
  add_evaluation_options(command);
  command.begin_group();
}

void TrainOptions::add_trial_to(Command& command) {
  command_ = command;
  command.begin_group("Data");
  add_data_options(command);
  command.begin_group("Model");
  model.add_to(command);
  command.begin_group("Training");
  add_optimizer_options(command);
  add_step_work_options(command);
  command.begin_group();
  if (model.takes_arrays) refuse_options_of_images(command);
}

void TrainOptions::set_length(training::RunConfig& config) const {
  if (!epochs && !steps) return;
  config.epochs = epochs.value_or(0);
  config.steps = steps.value_or(0);
}

namespace {

constexpr std::int64_t kMaxNamesBytes = 1 << 16;

/// The names themselves, or those on the lines of the file of that name.
std::string class_names(const std::string& text) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(text, ignored)) return text;
  std::string names;
  const auto content = read_file(text, kMaxNamesBytes);
  for (const char letter : without_byte_order_mark(content)) {
    if (letter != '\r') names += letter == '\n' ? ',' : letter;
  }
  while (names.ends_with(',')) names.pop_back();
  return names;
}

}  // namespace

training::DataConfig TrainOptions::data() const {
  auto data = run.data;
  data.class_names = class_names(data.class_names);
  for (auto* path : {&data.source, &data.images, &data.masks, &data.list}) {
    const bool names_a_path = !path->empty() && !(path == &data.source && *path == "synthetic");
    if (names_a_path) *path = std::filesystem::absolute(*path).string();
  }
  if (!data.target.empty()) data.target = std::filesystem::absolute(data.target).string();
  return data;
}

void TrainOptions::set_inputs(training::RunConfig& config) const {
  const auto* network = training::imported_network(config.model);
  if (network == nullptr || run.data.inputs.empty()) return;
  auto files = training::files_of_inputs(network->model(), run.data.inputs);
  for (auto& file : files) file = std::filesystem::absolute(file).string();
  config.data.inputs = std::move(files);
}

void TrainOptions::print_unasked_data() const {
  for (const auto* option : {"--data", "--images", "--masks"})
    if (given(option)) return;
  if (!run.data.inputs.empty()) return;
  say(fmt::format("no --data: training on {} generated images; --data FOLDER trains on yours",
                  run.data.synthetic_images));
}

void TrainOptions::require_share_applies(const training::DataConfig& data) const {
  if (!takes_share_ || !given("--validation") || data.list.empty()) return;
  const auto list = segmentation::read_list(data.list);
  if (std::ranges::count(list, data.validation_split, &segmentation::ListEntry::split) == 0) return;
  throw InvalidArgument(fmt::format(
      "--validation does not apply with \"{}\", which has a split \"{}\"; leave --validation out",
      data.list, data.validation_split));
}

training::RunConfig TrainOptions::config() const {
  training::RunConfig config = run;
  config.data = data();
  for (auto* path : {&config.init, &config.init_names})
    if (!path->empty()) *path = std::filesystem::absolute(*path).string();
  config.model = model.config({.loss = config.training.loss, .inputs = config.data.inputs});
  set_inputs(config);
  config.augmentation = training::Augmentation::from_text(augmentation);
  // A mirrored digit is no digit any more.
  if (!config.model.maps && !given("--augmentation")) config.augmentation = {};
  if (!init_skip.empty()) config.init_skip = split_list(init_skip);
  set_length(config);
  validate(config);
  require_share_applies(config.data);
  return config;
}

void require_maps(const training::RunConfig& config, std::string_view command) {
  if (config.model.maps) return;
  throw UnsupportedError(fmt::format(
      "{} judges maps of classes, and \"{}\" makes one row for each example; use train and "
      "evaluate",
      command, config.model.name));
}

std::vector<std::string> TrainOptions::given_names() const {
  std::vector<std::string> names;
  for (auto& option : command_.given()) names.push_back(std::move(option.name));
  return names;
}

training::ExecutionConfig TrainOptions::asked_machine() const {
  auto config = machine.config();
  config.parallel = parallel;
  return config;
}

void TrainOptions::apply_to(training::ExecutionConfig& saved) const {
  const auto names = given_names();
  const auto asked = asked_machine();
  training::apply_on_resume({.given = names, .config = run, .machine = asked}, saved);
}

std::vector<std::string> TrainOptions::resumption(const std::string& folder) const {
  using enum training::ResumePolicy;
  std::vector<std::string> arguments = {"--resume", folder};
  for (const auto& option : command_.given()) {
    const auto& name = option.name;
    const auto policy = training::find_run_option(name)->policy;
    const bool again = (policy == Replaceable || policy == Free) && name != "--resume" &&
                       name != "--previous" && name != "--ranks";
    if (again) arguments.push_back(option.text ? fmt::format("{}={}", name, *option.text) : name);
  }
  return arguments;
}

void TrainOptions::apply_to(training::SavedRun& saved) const {
  const auto names = given_names();
  auto asked = run;
  asked.data = data();
  set_length(asked);
  const auto machine_asked = asked_machine();
  training::apply_on_resume({.given = names, .config = asked, .machine = machine_asked},
                            saved.config, saved.machine);
  auto& ranks = saved.machine.parallel;
  take_processes(ranks);
  saved.machine.threads = threads_per_rank(ranks, machine.threads);
  set_inputs(saved.config);
  validate(saved.config);
  command_.require_fitting(
      {{"--keep", std::string(name_of(saved.config.keep))},
       {"--input", fmt::format("{}", fmt::join(saved.config.data.inputs, ","))},
       {"--transport", std::string(name_of(ranks.transport))},
       {"--parallel", to_string(ranks.strategy)},
       {"--order", std::string(name_of(ranks.order))}});
}

}  // namespace triptych::app
