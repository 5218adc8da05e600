// Estimated statistics of batch normalisation (batch_statistics.h), for any program that runs the
// graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/io/safetensors.h"
#include "core/runtime/executor.h"
#include "experiments/training/data/batcher.h"

namespace triptych::training {

/// Sets the inputs of a graph of a model, except the target.
void set_model_inputs(Executor& executor, const segmentation::Batch& batch);

/// The statistics of a graph of build_statistics_graph: the names of its states in pairs, mean and
/// variance.
std::vector<std::string> statistic_names(const Graph& graph);

/// BatchStatistics::estimate by an executor of such a graph. Leaves the last batch's statistics in
/// its states.
TensorMap estimate_statistics(Executor& executor, std::int64_t batches,
                              const std::function<segmentation::Batch(std::int64_t)>& batch,
                              const std::function<bool()>& go_on);

/// The first sample of the run from which statistics after `step` steps are estimated, from
/// `images` images each time: samples that no step draws.
inline std::int64_t first_statistics_sample(std::int64_t step, std::int64_t images) {
  return (std::int64_t{1} << 40) + step * images;
}

}  // namespace triptych::training
