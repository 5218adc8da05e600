// Learning rate of every step of a run: the warm-up, and then the schedule.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "experiments/training/run_config.h"

namespace triptych::training {

/// Learning rate of step `step`, counted from 0. The length of a cosine must be known.
float learning_rate_of(const RunConfig& config, std::int64_t step);

/// Steps after which the learning rate is 0 and no weight changes any more. Nothing when it never
/// is, or a cosine goes as long as the run.
std::optional<std::int64_t> schedule_end(const RunConfig& config);

/// Throws InvalidArgument when a new run of `total` steps in all would have steps left after its
/// schedule's end.
void require_schedule_of_new(const RunConfig& config, std::int64_t total);

/// The same for the run in `folder`, which continues after `done` steps.
void require_schedule_of_old(const RunConfig& config, std::int64_t done, std::int64_t total,
                             const std::filesystem::path& folder);

}  // namespace triptych::training
