// A whole training run in a folder: data, epochs, evaluation, checkpoints, resumption.
//   FOLDER/checkpoint/   states and configuration, replaced crash-safe
//   FOLDER/losses.csv    step,loss of every step so far
//   FOLDER/masks/        validation images: input, truth and prediction side by side
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/checkpoint.h"
#include "experiments/segmentation/metrics.h"
#include "experiments/training/predictor.h"
#include "experiments/training/run_config.h"
#include "experiments/training/trainer.h"

namespace triptych::training {

struct EpochReport {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t steps = 0;  ///< of this epoch; fewer than a whole one when the run stopped inside
  double loss = 0;         ///< mean over the steps
  segmentation::Scores scores;  ///< of the validation images
  Duration train_time;
  Duration evaluate_time;
  double images_per_second = 0;  ///< in training
};

struct StepReport {
  std::int64_t step = 0;   ///< finished steps of the run
  std::int64_t total = 0;  ///< steps that this call aims at
  std::int64_t epoch = 0;
  float loss = 0;
};

/// What a run tells while it goes on.
struct Observer {
  std::function<void(const StepReport&)> on_step = [](const StepReport&) {};
  std::function<void(const EpochReport&)> on_epoch = [](const EpochReport&) {};
};

enum class End { Finished, Interrupted };

class TrainingRun {
 public:
  /// A new run. Throws InvalidArgument when `folder` holds a checkpoint already, IoError when it
  /// cannot be written to.
  TrainingRun(const Machine& machine, RunConfig config, std::filesystem::path folder);
  /// Goes on from the newest checkpoint of `folder`, to the same bits as if never interrupted.
  static std::unique_ptr<TrainingRun> resume(const Machine& machine,
                                             const std::filesystem::path& folder);

  /// Trains to `epochs` epochs in all, or to `steps` optimiser steps in all when given; saves a
  /// checkpoint at the end of each epoch and at the end. `interrupted` is looked at after each
  /// step. Throws NumericError, naming the first bad node, when a loss is not finite; the last
  /// checkpoint stays.
  End train(std::int64_t epochs, std::optional<std::int64_t> steps, const Observer& observer,
            const std::atomic<bool>& interrupted);
  /// Writes pictures of the first validation images to FOLDER/masks.
  void write_masks(std::size_t count);

  const RunConfig& config() const { return config_; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<float>& losses() const { return losses_; }
  const std::vector<EpochReport>& epochs() const { return epochs_; }
  Trainer& trainer() { return *trainer_; }
  std::int64_t steps_per_epoch() const;

 private:
  TrainingRun(const Machine& machine, RunConfig config, std::filesystem::path folder,
              const Checkpoint* checkpoint);
  float train_step(std::int64_t step);
  EpochReport report_epoch(std::int64_t first_step, double train_seconds);
  std::vector<std::uint8_t> predict(const segmentation::Sample& sample);
  void save();
  [[noreturn]] void explain_bad_loss(std::int64_t step);

  const Machine& machine_;
  RunConfig config_;
  std::filesystem::path folder_;
  TrainingData data_;
  segmentation::Batcher batcher_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Predictor> predictor_;
  std::vector<float> losses_;
  std::vector<EpochReport> epochs_;
};

}  // namespace triptych::training
