// Options of runs that train on arrays, and what means nothing there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/app/command_line.h"
#include "experiments/training/run_config.h"

namespace triptych::app {

/// --input and --target.
void add_array_options(Command& command, training::DataConfig& data);

/// With --input the command, which has all options of a training, takes none that are of images, of
/// maps or of presets.
void refuse_options_of_images(Command& command);

}  // namespace triptych::app
