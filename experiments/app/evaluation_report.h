// An evaluation as tables, JSON and CSV files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "experiments/page/json.h"
#include "experiments/training/evaluation.h"
#include "experiments/training/training_run.h"

namespace triptych::app {

/// `names` are of class 0, 1, .... Empty: they have none.
void print_evaluation(const training::Evaluation& evaluation,
                      const std::vector<std::string>& names);

/// Fields of the evaluation alone (docs/reference/json.md).
page::Json evaluation_json(const training::Evaluation& evaluation,
                           const std::vector<std::string>& names);

/// Writes the pictures of a finished run, `count` of the first and of the worst validation images.
/// Returns the scores of these images, null as TrainingRun::judge_images does.
page::Json judge_run(training::TrainingRun& run, std::size_t count,
                     const std::atomic<bool>& interrupted);

/// A line per image. Scores that an image does not have are empty.
std::string images_csv(const training::Evaluation& evaluation);

/// A line per true class, a column per predicted one.
std::string confusion_csv(const segmentation::ConfusionMatrix& confusion);

}  // namespace triptych::app
