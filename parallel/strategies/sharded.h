// Sharded data parallelism (ZeRO, Rajbhandari et al., 2020): ranks share the batch as in data
// parallelism. Each owns a part of every parameter and of its moments, which it alone updates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "parallel/strategies/rank_graph.h"

namespace triptych::parallel {

/// Bytes per parameter and rank with n ranks, f32, Adam (4 each for parameter, gradient and two
/// moments, 16 in all): a part of the parameter and its moments stays from step to step, the rest
/// lives within one.
///   stage 1   12 / n, parameters 4, gradients 4 + 4 / n
///   stage 2   12 / n, parameters 4, gradients 4 / n and one bucket
///   stage 3   12 / n, gradients 4 / n, and one bucket of both
struct ShardOptions {
  int stage = 3;
  int world_size = 1;
  int rank = 0;
  ReductionOrder order = ReductionOrder::RankOrdered;  ///< of additions (ReduceScatter)
  /// Size of a bucket, which is gathered or scattered as one. Stage 3 gathers a bucket just before
  /// its first reader, and again behind the loss.
  std::size_t bucket_bytes = 4U << 20;
};

/// A rank's graph: `training` was built for the rank's share of the batch.
RankGraph shard(const TrainingGraph& training, const ShardOptions& options);

}  // namespace triptych::parallel
