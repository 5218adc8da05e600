// Reports of training runs, during and after the run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "experiments/app/progress.h"
#include "experiments/page/json.h"
#include "experiments/training/training_run.h"

namespace triptych::app {

/// Creates a new folder below runs/ with NAME, the current time, and a number if that folder
/// exists. Removed at the end if it is still empty.
class NewRunFolder {
 public:
  /// Throws IoError when it cannot be made.
  explicit NewRunFolder(const std::string& name);
  ~NewRunFolder();
  NewRunFolder(const NewRunFolder&) = delete;
  NewRunFolder& operator=(const NewRunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool made_parent_ = false;
};

/// Heads of the columns that say how good a run's model is, and the scores of an evaluation: Dice,
/// IoU and pixel error of maps, accuracy of classes, and the error of values.
std::vector<std::string> quality_heads(const training::RunConfig& config);
std::vector<std::string> quality_of(const training::RunConfig& config,
                                    const training::EpochReport& report);

/// The score with four digits, or "-" without validation.
std::string score_text(const training::EpochReport& report, segmentation::Score score);

/// Time of the steps.
Duration total_time(std::span<const training::EpochReport> epochs);

/// One result of `train --json`. The run is `finished` or was stopped.
page::Json run_json(training::TrainingRun& run, const training::DeviceSet& machine,
                    const std::vector<training::EpochReport>& epochs, bool finished);

/// Prints model, data, backend and length of the run.
void say_opening(const training::DeviceSet& machine, training::TrainingRun& run);

/// Draws progress and collects `epochs`, which it says, with the notes, when it `speaks`. All must
/// outlive the observer.
training::Observer observer_of(const training::RunConfig& config, Progress& progress,
                               std::vector<training::EpochReport>& epochs, bool speaks);

/// Prints the best evaluation, and whether the run ended because it stopped improving.
void say_best(const training::TrainingRun& run);

}  // namespace triptych::app
