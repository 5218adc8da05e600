// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "experiments/training/run_option_rows.h"

namespace triptych::training::rows {
namespace {

using enum OptionGroup;
using enum ResumePolicy;
using enum RankPolicy;
using enum Storage;
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
  return {
      {.name = "--optimizer",
       .help = "how gradients update the weights",
       .group = Learning,
       .member = of_optimizer<&O::kind>,
       .field = "optimizer"},
      {.name = "--momentum",
       .help = "of sgd",
       .group = Learning,
       .member = of_optimizer<&O::momentum>,
       .limits = kShare,
       .conditions = {{"--optimizer", {"sgd"}}},
       .field = "momentum"},
      {.member = of_optimizer<&O::nesterov>, .field = "nesterov"},
      {.member = of_optimizer<&O::beta1>, .limits = kShare, .field = "beta1"},
      {.member = of_optimizer<&O::beta2>, .limits = kShare, .field = "beta2"},
      {.member = of_optimizer<&O::epsilon>, .limits = NumberLimits{0, 1, true}, .field = "epsilon"},
      {.name = "--weight-decay",
       .help = "of every optimizer",
       .group = Learning,
       .member = of_optimizer<&O::weight_decay>,
       .limits = kShare,
       .field = "weight_decay"},
      {.name = "--loss",
       .help = "what training makes small; mean-squared-error is for values, not classes",
       .group = Learning,
       .member = of_step<&S::loss>,
       .field = "loss"},
      {.name = "--class-weights",
       .help = "of class 0, 1, … in the loss, as 1,4; or balanced, by their shares",
       .group = Learning,
       .member = of_weights<&W::classes>,
       .for_images = true,
       .field = "weights.classes",
       .storage = Later},
      {.name = "--border-weight",
       .help = "most that background between two objects gains in the loss; U-Net's paper has 10",
       .group = Learning,
       .member = of_weights<&W::border>,
       .limits = NumberLimits{0, 1000},
       .for_images = true,
       .field = "weights.border",
       .storage = Later},
      {.name = "--border-sigma",
       .help = "how far that reaches, in pixels",
       .group = Learning,
       .member = of_weights<&W::border_sigma>,
       .limits = NumberLimits{0.1, 100},
       .for_images = true,
       .conditions = {{"--border-weight"}},
       .field = "weights.border_sigma",
       .storage = Later},
      {.name = "--augmentation",
       .help =
           "none, flips (and transposition), all (flips,rotate,elastic), strong (every change), "
           "or a list of flips, rotate, elastic, scale, blur, brightness, contrast, gamma, "
           "noise; without it none of images that have one class",
       .group = Learning,
       .member = of_run<&C::augmentation>,
       .for_images = true,
       .field = "augmentation"},
      {.name = "--drawing",
       .help = "epochs (each image once) or replacement (any image each time)",
       .group = Learning,
       .member = of_run<&C::drawing>,
       .field = "drawing"},
      {.name = "--batch",
       .help = "images per step",
       .group = Learning,
       .member = of_step<&S::batch>,
       .limits = WholeLimits{1, 65536},
       .field = "batch"},
      {.name = "--seed",
       .help = "of weights, data order and augmentation",
       .group = Learning,
       .member = of_step<&S::seed>,
       .limits = WholeLimits{0, std::numeric_limits<std::int64_t>::max()},
       .field = "seed"},
      {.name = "--memory-limit",
       .help = "MiB of activations, 0: none; recompute cheap ones to stay below",
       .group = Learning,
       .member = of_run<&C::memory_limit_mib>,
       .limits = WholeLimits{0, kMaxMemoryMib},
       .resume = Replaceable,
       .field = "memory_limit_mib"},
  };
}

std::vector<RunOption> length_rows() {
  return {
      {.name = "--lr",
       .help = "learning rate",
       .group = Rate,
       .member = of_run<&C::learning_rate>,
       .limits = NumberLimits{1e-12, 1000},
       .field = "learning_rate"},
      {.name = "--schedule",
       .help = "of the learning rate: constant or cosine",
       .group = Rate,
       .member = of_run<&C::schedule>,
       .field = "schedule"},
      {.name = "--schedule-steps",
       .help = "length of the cosine; 0: the whole run",
       .group = Rate,
       .member = of_run<&C::schedule_steps>,
       .limits = kSteps,
       .conditions = {{"--schedule", {"cosine"}}},
       .field = "schedule_steps",
       .completed = true},
      {.name = "--warmup",
       .help = "first steps, in which the learning rate rises evenly; the cosine comes after them",
       .group = Rate,
       .member = of_run<&C::warmup>,
       .limits = kSteps,
       .field = "warmup",
       .storage = Later},
      {.name = "--epochs",
       .help = "epochs in all (default 10)",
       .group = Length,
       .member = of_run<&C::epochs>,
       .limits = kEpochs,
       .given_limits = WholeLimits{1, kEpochs.high},
       .help_default = false,
       .resume = Replaceable,
       .replaced_with = "--steps",
       .field = "epochs"},
      {.name = "--steps-per-epoch",
       .help = "0: as many whole batches as the training images fill, at least one",
       .group = Length,
       .member = of_run<&C::steps_per_epoch>,
       .limits = kSteps,
       .field = "steps_per_epoch"},
      {.name = "--steps",
       .help = "optimiser steps in all; without --epochs no other limit",
       .group = Steps,
       .member = of_run<&C::steps>,
       .limits = kSteps,
       .given_limits = WholeLimits{1, kSteps.high},
       .help_default = false,
       .resume = Replaceable,
       .replaced_with = "--epochs",
       .field = "steps"},
      {.name = "--accumulate",
       .help = "micro-batches that each rank cuts its share of --batch into, one after another in "
               "the memory of one",
       .group = Steps,
       .member = of_run<&C::accumulate>,
       .limits = WholeLimits{1, 4096},
       .field = "accumulate",
       .storage = Later},
      {.name = "--tile",
       .help = "side of evaluation tiles; 0: chosen by the model",
       .group = Evaluation,
       .member = of_run<&C::tile>,
       .limits = WholeLimits{0, 16384},
       .for_images = true,
       .field = "tile"},
      {.name = "--margin",
       .help = "overlap of evaluation tiles; -1: a fourth",
       .group = Evaluation,
       .member = of_run<&C::margin>,
       .limits = WholeLimits{-1, 8191},
       .for_images = true,
       .field = "margin"},
      {.name = "--statistics-batches",
       .help = "training batches from which evaluations and checkpoints estimate the statistics of "
               "batch normalisation anew; 0: training's own",
       .group = Evaluation,
       .member = of_run<&C::statistics_batches>,
       .limits = WholeLimits{0, 10000},
       .field = "statistics_batches",
       .storage = Later,
       .absent = "0"},
      {.name = "--mask-pictures",
       .help = "validation pictures to write",
       .group = Evaluation,
       .member = of_command<&K::mask_pictures>,
       .limits = WholeLimits{0, 1000000},
       .for_images = true,
       .resume = Free},
  };
}

std::vector<RunOption> folder_rows() {
  return {
      {.name = "--out",
       .help = "run folder (default runs/MODEL-DATE)",
       .group = Folder,
       .member = of_command<&K::out>,
       .place = OptionPlace::OutputFolder,
       .resume = Refused},
      {.name = "--resume",
       .help = "go on with the run in this folder",
       .group = Folder,
       .member = of_command<&K::resume>,
       .place = OptionPlace::OutputFolder,
       .resume = Free},
      {.name = "--checkpoint-every",
       .help = "steps between checkpoints; 0: only at the end of epochs",
       .group = Folder,
       .member = of_run<&C::checkpoint_every>,
       .limits = kSteps,
       .resume = Replaceable,
       .field = "checkpoint_every",
       .storage = Later},
      {.name = "--previous",
       .help = "resume from the checkpoint before the newest",
       .group = Folder,
       .member = of_command<&K::previous>,
       .conditions = {{"--resume"}},
       .resume = Free},
      {.name = "--init",
       .help = "begin with the weights of a run folder or of a safetensors file",
       .group = Keeping,
       .member = of_run<&C::init>,
       .resume = Refused,
       .ranks = Own,
       .field = "init",
       .storage = Later,
       .written_with = "init"},
      {.name = "--init-names",
       .help = "JSON: names here, and names in --init",
       .group = Keeping,
       .member = of_run<&C::init_names>,
       .conditions = {{"--init"}},
       .resume = Refused,
       .field = "init_names",
       .storage = Later,
       .written_with = "init_names"},
      {.name = "--init-skip",
       .help = "names of weights that begin anew, as head*,up0.*",
       .group = Keeping,
       .member = of_run<&C::init_skip>,
       .comma_list = true,
       .conditions = {{"--init"}},
       .resume = Refused,
       .field = "init_skip",
       .storage = Later,
       .written_with = "init"},
      {.member = of_run<&C::init_sha256>,
       .field = "init_sha256",
       .storage = Later,
       .written_with = "init",
       .completed = true},
      {.name = "--keep",
       .help = "keep also the weights with the best validation, by dice or loss, in OUT/best",
       .group = Keeping,
       .member = of_run<&C::keep>,
       .field = "keep",
       .storage = Later},
      {.name = "--patience",
       .help = "end the run after so many epochs that were no better; 0: never",
       .group = Keeping,
       .member = of_run<&C::patience>,
       .limits = kEpochs,
       .conditions = {{"--keep", {"dice", "loss"}}},
       .resume = Replaceable,
       .field = "patience",
       .storage = Later},
      {.member = of_run<&C::cut>,
       .field = "cut",
       .storage = Later,
       .written_with = "cut",
       .completed = true},
  };
}

}  // namespace

std::vector<RunOption> learning() {
  auto rows = optimizer_rows();
  for (auto part : {length_rows(), folder_rows()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace triptych::training::rows
