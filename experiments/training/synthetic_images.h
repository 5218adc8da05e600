// Drawn images of a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/training/run_config.h"

namespace triptych::training {

/// The images of a run with "synthetic" data: those that load_data loads.
segmentation::Dataset synthetic_images(const RunConfig& config);

}  // namespace triptych::training
