// How many ranks share a step, and how, on the command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/app/options.h"
#include "experiments/training/run_folder.h"

namespace triptych::app {

/// --ranks, --transport, --parallel and what belongs to them.
void add_parallel_options(Command& command, training::ParallelConfig& parallel);

/// Threads of each rank: those asked for, or its share of this machine's.
int threads_per_rank(const training::ParallelConfig& config, int asked);

}  // namespace triptych::app
