// Graph of one rank that a strategy makes of a training step, and where the model's states
// are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/nn/training_graph.h"
#include "core/ops/collectives.h"
#include "parallel/strategies/state_home.h"
#include "parallel/strategies/strategy.h"

namespace triptych::parallel {

/// Values that a worker and the server of an asynchronous strategy send each other.
struct Exchange {
  /// Outputs of a worker's graph and inputs of the server's. None: changes of the returned parts.
  std::vector<std::string> contributed = {};
  std::vector<std::string> returned = {};  ///< states
};

struct RankGraph {
  Graph graph;
  /// By name, the same on every rank.
  std::map<std::string, StateHome> homes = {};
  int share = -1;  ///< of the batch, when it is not the rank's number
  Exchange exchange = {};
  std::vector<std::int64_t> cut = {};  ///< of a pipeline: forward nodes of each stage
  /// Under tensor parallelism: operators that every rank computes whole, from operands that were
  /// cut, because they have no rule (Op::shardings).
  std::vector<std::string> without_rule = {};
  /// Reasons for differences between a step of all ranks and a step of one rank with the whole
  /// batch, each a clause. Empty for strategies with independent ranks.
  std::vector<std::string> inexact = {};
};

/// A training step and who takes part in it.
struct StrategyRequest {
  TrainingStep step;       ///< of any graph
  std::int64_t batch = 1;  ///< of all ranks together
  int world_size = 1;
  int rank = 0;
  ReductionOrder order = ReductionOrder::RankOrdered;  ///< of additions (AllReduce)
  /// Replicated, ShardTree: the number of virtual shards of the batch, for every number of ranks.
  /// Each rank works on as many, one after another, so that the sums of all of them are one
  /// balanced tree. 0: as many as there are ranks.
  int shards = 0;
  /// Replicated, Hierarchical and LocalSgd: into how many micro-batches each rank cuts its share,
  /// or each of its shards. They run one after another, in the memory of one.
  int accumulate = 1;
  /// Seconds of the nodes of one micro-batch's training graph by name, the same on every rank. A
  /// pipeline's cut balances them. Empty: modelled.
  std::map<std::string, double> node_seconds = {};
  /// A pipeline's cut of before, taken again when it has as many stages.
  std::vector<std::int64_t> cut = {};
};

/// The graph of `request.rank`. For one rank, the whole step. Throws InvalidArgument for a
/// batch that cannot be shared.
RankGraph make_rank_graph(const Strategy& strategy, const StrategyRequest& request);

}  // namespace triptych::parallel
