// Which runs trained on a data set that this program wrote. A run adds itself to the list of such a
// folder (core/io/own_list.h). Nothing is written into data of others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "experiments/training/run_config.h"

namespace triptych::training {

/// Notes that the run in `run` trains on `data`. Does nothing where the images are not this
/// program's own, or where their folder cannot be written: then nobody replaces them either.
void note_run_on(const DataConfig& data, const std::filesystem::path& run);

/// The runs that trained on the data set in `folder` and are still where they were.
std::vector<std::filesystem::path> runs_on(const std::filesystem::path& folder);

}  // namespace triptych::training
