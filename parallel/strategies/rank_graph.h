// What a strategy makes of a training step: the graph of one rank, and where the model's states
// are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "core/nn/training_graph.h"

namespace triptych::parallel {

/// Where a state of the model lives that not every rank has whole.
struct StateHome {
  int rank = -1;     ///< the only one that has it; -1: each has a part (shard_elements), in order
  TensorSpec whole;  ///< as a model on one rank has it
};

struct RankGraph {
  Graph graph;
  /// By name, the same on every rank.
  std::map<std::string, StateHome> homes;
};

/// A training step and who takes part in it.
struct StrategyRequest {
  ModelConfig model;
  TrainingOptions options;  ///< with the batch of all ranks together
  int world_size = 1;
  int rank = 0;
  std::string order = "rank-ordered";  ///< of additions; see AllReduce
};

/// The graph of `request.rank` under a strategy: "dp", "zero1", "zero2" or "zero3". With one rank
/// that of a model alone. Throws InvalidArgument for another name, and for a batch that the ranks
/// cannot share.
RankGraph make_rank_graph(std::string_view strategy, const StrategyRequest& request);

}  // namespace triptych::parallel
