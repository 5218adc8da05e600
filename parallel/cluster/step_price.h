// Time of a step of many ranks, from that of each node and from the links between them:
// modelled, nothing runs. The collectives are those of the ranks' own graphs, step by step as their
// schedules have them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "parallel/comm/simulated_time.h"
#include "parallel/strategies/mesh.h"

namespace triptych::parallel {

/// One node of a rank's graph, in the order of the rank's execution.
struct RankStep {
  NodeId node;
  double seconds = 0;  ///< of its own computation. A collective has none
  /// Overlap of collectives with the computation: how many must have finished before it.
  std::size_t collectives_needed = 0;
};

struct RankPlan {
  const Graph* graph = nullptr;
  std::vector<RankStep> steps;
};

/// Connection of the ranks.
struct Cluster {
  Interconnect interconnect;
  Mesh mesh = {};              ///< of the strategy. Empty: all ranks along each axis
  double add_bytes_per_s = 0;  ///< of received data. 0: additions take no time
  /// Between tensors and the messages that they travel in, on each side. 0: no time.
  double copy_bytes_per_s = 0;
  bool overlap = false;  ///< collectives overlap the computation
};

struct StepPrice {
  double seconds = 0;               ///< until the last rank is done
  std::vector<RankTime> ranks;      ///< of each: all, and its computation (copies included)
  std::vector<RankTimeline> lines;  ///< of each
  std::vector<double> bytes_sent;   ///< by each
};

/// `ranks[r]` is rank r's. Throws InvalidArgument when their number is not the interconnect's.
StepPrice price_step(std::span<const RankPlan> ranks, const Cluster& cluster);

}  // namespace triptych::parallel
