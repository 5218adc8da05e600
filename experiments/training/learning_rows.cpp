// Rows of the table of options. A row is a paragraph: identity, help, then unusual properties.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "experiments/training/run_option_rows.h"

namespace triptych::training::rows {
namespace {

using enum OptionGroup;
using enum ResumePolicy;
using enum RankPolicy;
using C = RunConfig;
using S = TrainingOptions;
using O = OptimizerConfig;
using W = segmentation::WeightOptions;
using K = CommandConfig;

constexpr WholeLimits kSteps = {0, 1000000000};
constexpr WholeLimits kEpochs = {0, 1000000};
constexpr NumberLimits kShare = {0, 1};

template <auto Member>
Value of_run(RunConfig& config) {
  return value_of_member(config.*Member);
}

template <auto Member>
Value of_step(RunConfig& config) {
  return value_of_member(config.training.*Member);
}

template <auto Member>
Value of_optimizer(RunConfig& config) {
  return value_of_member(config.training.optimizer.*Member);
}

template <auto Member>
Value of_weights(RunConfig& config) {
  return value_of_member(config.weights.*Member);
}

template <auto Member>
Value of_command(CommandConfig& config) {
  return value_of_member(config.*Member);
}

std::vector<RunOption> optimizer_rows() {
  // clang-format off
  return {
      {.name = "--optimizer", .group = Learning, .member = of_optimizer<&O::kind>,
       .field = "optimizer",
       .help = "rule that updates the weights"},
      {.name = "--momentum", .group = Learning, .member = of_optimizer<&O::momentum>,
       .field = "momentum",
       .help = "momentum of sgd",
       .limits = kShare, .conditions = {{"--optimizer", {"sgd"}}}},
      {.member = of_optimizer<&O::nesterov>, .field = "nesterov"},
      {.member = of_optimizer<&O::beta1>, .field = "beta1", .limits = kShare},
      {.member = of_optimizer<&O::beta2>, .field = "beta2", .limits = kShare},
      {.member = of_optimizer<&O::epsilon>, .field = "epsilon", .limits = NumberLimits{0, 1, true}},
      {.name = "--weight-decay", .group = Learning, .member = of_optimizer<&O::weight_decay>,
       .field = "weight_decay",
       .help = "weight decay of every optimizer",
       .limits = kShare},
      {.name = "--loss", .group = Learning, .member = of_step<&S::loss>, .field = "loss",
       .help = "loss function. mean-squared-error is for values, not classes"},
  };
  // clang-format on
}

std::vector<RunOption> step_rows() {
  // clang-format off
  return {
      {.name = "--class-weights", .group = Learning, .member = of_weights<&W::classes>,
       .field = "weights.classes",
       .value = "WEIGHTS",
       .help = "weight of class 0, 1, … in the loss, such as 1,4, or balanced, from their shares",
       .for_images = true},
      {.name = "--border-weight", .group = Learning, .member = of_weights<&W::border>,
       .field = "weights.border",
       .help = "largest extra weight of background between two objects. The U-Net paper uses 10",
       .limits = NumberLimits{0, 1000}, .for_images = true},
      {.name = "--border-sigma", .group = Learning, .member = of_weights<&W::border_sigma>,
       .field = "weights.border_sigma",
       .value = "PIXELS",
       .help = "reach of the border weight in pixels",
       .limits = NumberLimits{0.1, 100}, .for_images = true, .conditions = {{"--border-weight"}}},
      {.name = "--augmentation", .group = Learning, .member = of_run<&C::augmentation>,
       .field = "augmentation",
       .value = "CHANGES",
       .help = "none, flips (with transposition), all (flips,rotate,elastic), strong (every "
          "change), or a list of flips, rotate, elastic, scale, blur, brightness, contrast, gamma, "
          "noise. A classifier has none by default",
       .for_images = true},
      {.name = "--drawing", .group = Learning, .member = of_run<&C::drawing>, .field = "drawing",
       .help = "order of the images: epochs (each once per epoch) or replacement (at random)"},
      {.name = "--batch", .group = Learning, .member = of_step<&S::batch>, .field = "batch",
       .help = "images per step",
       .limits = WholeLimits{1, 65536}},
      {.name = "--seed", .group = Learning, .member = of_step<&S::seed>, .field = "seed",
       .help = "seed of weights, data order and augmentation",
       .limits = WholeLimits{0, std::numeric_limits<std::int64_t>::max()}},
      {.name = "--memory-limit", .group = Learning, .member = of_run<&C::memory_limit_mib>,
       .field = "memory_limit_mib",
       .value = "MIB",
       .help = "limit on the memory of activations in MiB, or with a unit: 2GiB (0: no limit). "
          "Cheap ones are recomputed to stay below it",
       .limits = WholeLimits{0, kMaxMemoryMib}, .unit = Unit::Mebibytes, .resume = Replaceable},
  };
  // clang-format on
}

std::vector<RunOption> length_rows() {
  // clang-format off
  return {
      {.name = "--lr", .group = Rate, .member = of_run<&C::learning_rate>, .field = "learning_rate",
       .value = "RATE",
       .help = "learning rate",
       .limits = NumberLimits{1e-12, 1000}},
      {.name = "--schedule", .group = Rate, .member = of_run<&C::schedule>, .field = "schedule",
       .help = "schedule of the learning rate"},
      {.name = "--schedule-steps", .group = Rate, .member = of_run<&C::schedule_steps>,
       .field = "schedule_steps",
       .help = "length of the cosine in steps (0: the whole run)",
       .limits = kSteps, .conditions = {{"--schedule", {"cosine"}}}, .completed = true},
      {.name = "--warmup", .group = Rate, .member = of_run<&C::warmup>, .field = "warmup",
       .help = "steps of the linear rise of the learning rate before the cosine",
       .limits = kSteps},
      {.name = "--epochs", .group = Length, .member = of_run<&C::epochs>, .field = "epochs",
       .help = "number of epochs (default 10)",
       .limits = kEpochs, .given_limits = WholeLimits{1, kEpochs.high}, .help_default = false,
       .resume = Replaceable, .replaced_with = "--steps"},
      {.name = "--steps-per-epoch", .group = Length, .member = of_run<&C::steps_per_epoch>,
       .field = "steps_per_epoch",
       .help = "steps of an epoch (0: as many whole batches as the training images fill, at least "
          "one)",
       .limits = kSteps},
      {.name = "--steps", .group = Steps, .member = of_run<&C::steps>, .field = "steps",
       .help = "number of optimiser steps, without --epochs the only limit",
       .limits = kSteps, .given_limits = WholeLimits{1, kSteps.high}, .help_default = false,
       .resume = Replaceable, .replaced_with = "--epochs"},
      {.name = "--accumulate", .group = Steps, .member = of_run<&C::accumulate>,
       .field = "accumulate",
       .help = "micro-batches per rank and step, computed in sequence with the memory of one",
       .limits = WholeLimits{1, 4096}},
      {.name = "--tile", .group = Evaluation, .member = of_run<&C::tile>, .field = "tile",
       .help = "side of evaluation tiles in pixels (0: chosen by the model)",
       .limits = WholeLimits{0, 16384}, .for_images = true},
      {.name = "--margin", .group = Evaluation, .member = of_run<&C::margin>, .field = "margin",
       .help = "overlap of evaluation tiles in pixels (-1: a fourth of the tile)",
       .limits = WholeLimits{-1, 8191}, .for_images = true},
      {.name = "--statistics-batches", .group = Evaluation,
       .member = of_run<&C::statistics_batches>, .field = "statistics_batches",
       .help = "training batches that estimate the statistics of batch normalisation for "
          "evaluations and checkpoints (0: those of training)",
       .limits = WholeLimits{0, 10000}},
      {.name = "--mask-pictures", .group = Evaluation, .member = of_command<&K::mask_pictures>,
       .help = "number of pictures of the first and of the worst validation images",
       .limits = WholeLimits{0, 1000000}, .for_images = true, .resume = Free},
  };
  // clang-format on
}

std::vector<RunOption> folder_rows() {
  // clang-format off
  return {
      {.name = "--out", .group = Folder, .member = of_command<&K::out>,
       .value = "DIR",
       .help = "run folder (default runs/MODEL-DATE)",
       .place = OptionPlace::OutputFolder, .resume = Refused},
      {.name = "--resume", .group = Folder, .member = of_command<&K::resume>,
       .value = "RUN",
       .help = "resume the run in this folder",
       .place = OptionPlace::OutputFolder, .resume = Free},
      {.name = "--checkpoint-every", .group = Folder, .member = of_run<&C::checkpoint_every>,
       .field = "checkpoint_every",
       .help = "steps between checkpoints (0: only at the end of epochs)",
       .limits = kSteps, .resume = Replaceable},
      {.name = "--previous", .group = Folder, .member = of_command<&K::previous>,
       .help = "resume from the checkpoint before the newest",
       .conditions = {{"--resume"}}, .resume = Free},
      {.name = "--init", .group = Keeping, .member = of_run<&C::init>, .field = "init",
       .value = "RUN",
       .help = "start with the weights of a run folder or of a safetensors file",
       .resume = Refused, .ranks = Own, .written_with = "init"},
      {.name = "--init-names", .group = Keeping, .member = of_run<&C::init_names>,
       .field = "init_names",
       .value = "FILE",
       .help = "JSON file that maps names of weights of the model to names in --init",
       .conditions = {{"--init"}}, .resume = Refused,
       .written_with = "init_names"},
      {.name = "--init-skip", .group = Keeping, .member = of_run<&C::init_skip>,
       .field = "init_skip",
       .value = "NAMES",
       .help = "names of weights that --init does not replace, such as head*,up0.*",
       .comma_list = true, .conditions = {{"--init"}}, .resume = Refused,
       .written_with = "init"},
      {.member = of_run<&C::init_sha256>, .field = "init_sha256",
       .written_with = "init", .completed = true},
      {.name = "--keep", .group = Keeping, .member = of_run<&C::keep>, .field = "keep",
       .help = "also keep the weights of the best validation, by dice or loss, in OUT/best"},
      {.name = "--patience", .group = Keeping, .member = of_run<&C::patience>, .field = "patience",
       .help = "end the run after this many epochs without improvement (0: never)",
       .limits = kEpochs, .conditions = {{"--keep", {"dice", "loss"}}}, .resume = Replaceable},
      {.member = of_run<&C::cut>, .field = "cut", .written_with = "cut",
       .completed = true},
  };
  // clang-format on
}

}  // namespace

std::vector<RunOption> learning() {
  auto rows = optimizer_rows();
  for (auto part : {step_rows(), length_rows(), folder_rows()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace triptych::training::rows
