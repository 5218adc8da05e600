// Limits of a run's numbers, wherever they come from: an option, or a checkpoint.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/training/run_config.h"

namespace triptych::training {

/// Throws InvalidArgument, naming it, for a number that is not within its limits (limits.h).
void require_within_limits(const RunConfig& config);

}  // namespace triptych::training
