// What a strategy makes of a training step: the graph of one rank, and where the model's states
// are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/nn/training_graph.h"
#include "parallel/strategies/mesh.h"
#include "parallel/strategies/state_home.h"

namespace triptych::parallel {

/// What a worker and the server of an asynchronous strategy send each other.
struct Exchange {
  /// Outputs of a worker's graph and inputs of the server's; none: changes of what is returned.
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
};

enum class PipelineOrder : std::uint8_t {
  GPipe,                  ///< all forward passes, then all backward passes
  OneForwardOneBackward,  ///< a backward pass as soon as it can: fewer activations are alive
};

/// How ranks share a training step.
struct Strategy {
  enum class Kind : std::uint8_t {
    Replicated,
    Sharded,
    Pipeline,
    Server,
    Central,
    LocalSgd,
    Hierarchical,
    Tensor,
    AsyncServer,
    AsyncLocalSgd
  };
  Kind kind = Kind::Replicated;
  int shard_stage = 0;    ///< of Sharded: 1 to 3
  int micro_batches = 1;  ///< of Pipeline
  PipelineOrder order = PipelineOrder::OneForwardOneBackward;
  int period = 1;  ///< of LocalSgd and AsyncLocalSgd: steps between averages of the states
  int bound = 3;   ///< of both Async kinds; see Stretch
  Mesh mesh = {};  ///< empty: all ranks along one axis, that of the kind
};

/// "dp", "zero1", "zero2", "zero3", "layers" (a pipeline of one micro-batch), "pipeline:8",
/// "pipeline:8,gpipe", "ps-sync", "central" or "local-sgd:16" (each rank trains on its own, and the
/// caller averages all f32 states every 16 steps), "ps-async" or "ps-async:8" and
/// "local-sgd-async" (every 16 steps), "local-sgd-async:16" or "local-sgd-async:16,8"
/// (asynchronous.h; the caller runs stretches; the last number is the bound), and with a mesh:
/// pipelines with "dp=2,pp=2", each replicated, "tp" (tensor parallelism), likewise with
/// "dp=2,tp=2", and "ddp2d" with "node=2,device=4". Throws InvalidArgument for anything else.
Strategy strategy_from_string(std::string_view text, std::string_view mesh = {});

/// Is it a policy of asynchronous.h?
bool asynchronous(const Strategy& strategy);

/// A training step and who takes part in it.
struct StrategyRequest {
  TrainingStep step;       ///< of any graph
  std::int64_t batch = 1;  ///< of all ranks together
  int world_size = 1;
  int rank = 0;
  std::string order = "rank-ordered";  ///< of additions; see AllReduce
  /// Replicated, "shard-tree": into how many virtual shards the batch is cut, whatever the number
  /// of ranks; each rank works on as many, one after another, so that the sums of all of them are
  /// one balanced tree. 0: as many as there are ranks.
  int shards = 0;
  /// Replicated, Hierarchical and LocalSgd: into how many micro-batches each rank cuts its share,
  /// or each of its shards. They run one after another, in the memory of one.
  int accumulate = 1;
  /// Seconds of the nodes of one micro-batch's training graph by name, the same on every rank: what
  /// a pipeline's cut balances. Empty: modelled.
  std::map<std::string, double> node_seconds = {};
  /// A pipeline's cut of before, taken again when it has as many stages.
  std::vector<std::int64_t> cut = {};
};

/// The graph of `request.rank`; of one rank, the whole step. Throws InvalidArgument for a
/// batch that cannot be shared.
RankGraph make_rank_graph(const Strategy& strategy, const StrategyRequest& request);

}  // namespace triptych::parallel
