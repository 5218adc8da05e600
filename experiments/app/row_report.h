// Scores of a model of rows (classes of images and tokens, values) as tables, JSON and CSV files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "experiments/page/json.h"
#include "experiments/training/row_evaluation.h"

namespace triptych::app {

/// Names of the run's classes by number. Empty: they have none.
std::vector<std::string> class_names_of(const training::RunConfig& config);
/// "2", or "2 nucleus" of a class that has a name.
std::string class_text(const std::vector<std::string>& names, std::size_t label);

void print_rows(const training::RunConfig& config, const training::RowEvaluation& evaluation);

/// Fields of the evaluation alone (docs/reference/json.md).
page::Json rows_json(const training::RunConfig& config, const training::RowEvaluation& evaluation);

/// A line per example, and of classes a line per true class, a column per predicted one.
std::string rows_csv(const training::RunConfig& config, const training::RowEvaluation& evaluation);
std::string confusion_csv(const training::RunConfig& config,
                          const training::RowEvaluation& evaluation);

}  // namespace triptych::app
