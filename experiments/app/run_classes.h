// `triptych run` with a trained model that tells images apart: their classes in a table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/app/prediction_options.h"

namespace triptych::app {

/// Writes FOLDER/classes.csv: each picture, every section of a stack, with its likeliest class and
/// its probability. Pictures that cannot be read are left out, with a note and exit status 2.
/// Throws UnsupportedError for a run on arrays.
void run_classes(const PredictionOptions& options, const training::SavedRun& run,
                 const std::vector<std::filesystem::path>& pictures, const std::string& folder,
                 Context& context);

}  // namespace triptych::app
