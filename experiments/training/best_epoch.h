// Which evaluation of a run was its best, and when to give up waiting for a better one. Both follow
// from the evaluations so far alone, so that a resumed run decides identically.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "experiments/training/run_folder.h"

namespace triptych::training {

/// Index of the best epoch by `keep`: the highest Dice, mean over classes, or the lowest validation
/// loss. The first of equals. Nothing without an evaluation.
std::optional<std::size_t> best_epoch(std::span<const EpochReport> epochs, Keep keep);

/// True when the last `patience` evaluations, 0: however many, are no better than the best before
/// them.
bool out_of_patience(std::span<const EpochReport> epochs, Keep keep, std::int64_t patience);

}  // namespace triptych::training
