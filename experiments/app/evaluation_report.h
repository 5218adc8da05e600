// An evaluation as tables, JSON and CSV files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "experiments/page/json.h"
#include "experiments/training/evaluation.h"

namespace triptych::app {

/// `names` are of class 0, 1, .... Empty: they have none.
void print_evaluation(const training::Evaluation& evaluation,
                      const std::vector<std::string>& names);

/// Fields of the evaluation alone (docs/reference/json.md).
page::Json evaluation_json(const training::Evaluation& evaluation,
                           const std::vector<std::string>& names);

/// A line per image. What an image says nothing of is empty.
std::string images_csv(const training::Evaluation& evaluation);

/// A line per true class, a column per predicted one.
std::string confusion_csv(const segmentation::ConfusionMatrix& confusion);

}  // namespace triptych::app
