// Data parallelism: every rank trains the whole model on its share of the batch, and the gradients
// are averaged before the update, so that the parameters of all ranks stay the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/nn/training_graph.h"
#include "core/ops/collectives.h"

namespace triptych::parallel {

struct DataParallelOptions {
  int world_size = 1;
  ReductionOrder order = ReductionOrder::RankOrdered;  ///< of additions (AllReduce)
  /// That many neighbouring ranks, the axis "device", are near one another, and the axis "node"
  /// connects them: each device carries a part of the sum between nodes. 0: all ranks are equal.
  int devices_per_node = 0;
  std::size_t bucket_bytes = 25U << 20;
  /// Size of the bucket with the last gradients: no computation is left to overlap with it.
  std::size_t last_bucket_bytes = 1U << 20;
  bool gradients = true;  ///< false: the loss alone is averaged
};

/// Gradients that travel together, in the order of the backward pass.
struct Bucket {
  std::vector<std::string> gradients;
  std::size_t bytes = 0;
};

/// The gradients of a step as buckets of one, in the order of their nodes.
std::vector<Bucket> gradients_in_order(const TrainingGraph& training);

/// Cuts gradients, which come in this order with these sizes, into buckets. A gradient larger than
/// a bucket has one of its own.
std::vector<Bucket> make_buckets(const std::vector<Bucket>& gradients,
                                 const DataParallelOptions& options);

/// A rank's graph: `training` was built for the rank's share of the batch. Its loss and gradients
/// become averages over the ranks, each bucket as soon as its last gradient is there.
TrainingGraph data_parallel(TrainingGraph training, const DataParallelOptions& options);

}  // namespace triptych::parallel
