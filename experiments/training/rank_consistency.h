// Settings that the processes of one run must have in common: compared before the first step, so
// that no process trains with another model, other data or another schedule than the others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "experiments/training/device_set.h"
#include "experiments/training/run_config.h"
#include "parallel/comm/communicator.h"

namespace triptych::training {

/// Facts that decide a run's bits, as text by name. A path (a point in a name steps into a part)
/// such as "data.validation_fraction" is a field of the run's configuration, "parallel.order" one
/// of the machine's.
using Facts = std::map<std::string, std::string>;

/// Every field of both configurations except those that cannot change a bit: the paths of data and
/// checkpoint, threads, deadlines, the simulated links. Under `bf16-exact` and `int8`, which have
/// the same bits everywhere, also except the machine and its kernels.
Facts facts_of(const RunConfig& config, const ExecutionConfig& machine);

/// SHA-256 over names, sizes, pixels and labels of the images, in their order. Calls `on_sample` at
/// each.
std::string digest_of(
    const TrainingData& data, const std::function<void()>& on_sample = [] {});

/// Returns when the facts of all ranks are those of rank 0. All ranks call it at the same time.
/// Throws InvalidArgument on every rank, which names the first rank that differs and each fact with
/// both values.
void require_rank_consistency(parallel::Communicator& communicator, const Facts& own);

}  // namespace triptych::training
