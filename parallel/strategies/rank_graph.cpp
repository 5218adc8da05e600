// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/rank_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "parallel/strategies/asynchronous.h"
#include "parallel/strategies/data_parallel.h"
#include "parallel/strategies/parameter_server.h"
#include "parallel/strategies/pipeline.h"
#include "parallel/strategies/sharded.h"
#include "parallel/strategies/shares.h"
#include "parallel/strategies/tensor_parallel.h"

namespace triptych::parallel {
namespace {

/// How a batch is cut into equal parts.
struct Parts {
  int count = 1;
  const char* what = "";
  int first = 0;       ///< number of the rank's first part
  bool apart = false;  ///< the parts are of ranks that train apart
};

/// The step of a part of the batch, one of `parts` equal ones.
ShareStep step_of_part(const StrategyRequest& request, const Parts& parts) {
  if (request.batch % parts.count != 0) {
    throw InvalidArgument(fmt::format(
        "a batch of {} cannot be shared out evenly over {} {}; change the option batch or {}",
        request.batch, parts.count, parts.what,
        request.accumulate > 1              ? "the option accumulate"
        : parts.count == request.world_size ? "the option ranks"
        : parts.count == request.shards     ? "the option shards"
                                            : "the option parallel"));
  }
  return step_of_share(request.step, {.rows = request.batch / parts.count,
                                      .shares = parts.apart ? request.accumulate : parts.count,
                                      .number = parts.first});
}

/// The step of a rank's part of the batch, which its micro-batches make one after another.
ShareStep step_of_rank(const StrategyRequest& request, bool apart = false) {
  const int micro = request.accumulate;
  auto part = step_of_part(request, {.count = request.world_size * micro,
                                     .what = micro == 1 ? "ranks" : "micro-batches",
                                     .first = request.rank * micro,
                                     .apart = apart});
  if (micro == 1) return part;
  part.training = pipeline(part.training, {.micro_batches = micro,
                                           .tree = request.order == ReductionOrder::ShardTree})
                      .training;
  return part;
}

/// Refuses micro-batches that the strategy would not run one after another.
void require_accumulation(const Strategy& strategy, int accumulate) {
  using Kind = Strategy::Kind;
  if (accumulate < 1) throw InvalidArgument("a step accumulates at least one micro-batch");
  if (accumulate == 1 || strategy.kind == Kind::Replicated || strategy.kind == Kind::Hierarchical ||
      strategy.kind == Kind::LocalSgd) {
    return;
  }
  throw InvalidArgument(fmt::format(
      "{} accumulated micro-batches go with the strategies dp, ddp2d and local-sgd "
      "alone; leave out the option accumulate, or choose one of them by the option parallel{}",
      accumulate,
      strategy.kind == Kind::Pipeline
          ? fmt::format("; pipeline:{} has as many micro-batches", accumulate)
          : ""));
}

/// One of several pipelines, each with a share of the batch, when the mesh has an axis "dp".
RankGraph make_stage(const Strategy& strategy, const StrategyRequest& request) {
  const auto& mesh = strategy.mesh;
  const int replicas = mesh.size("dp");
  const int stages = request.world_size / replicas;
  const int stage = mesh.empty() ? request.rank : mesh.place("pp", request.rank);
  const int replica = mesh.place("dp", request.rank);
  auto part = step_of_part(request, {.count = replicas * strategy.micro_batches,
                                     .what = "micro-batches",
                                     .first = replica * strategy.micro_batches});
  auto own = pipeline(part.training, {.stages = stages,
                                      .stage = stage,
                                      .micro_batches = strategy.micro_batches,
                                      .order = strategy.order,
                                      .node_seconds = request.node_seconds,
                                      .cut = request.cut});
  if (!mesh.empty()) {
    const auto pipe = mesh.line("pp", 0);
    for (auto& [name, home] : own.homes) home.rank = pipe[static_cast<std::size_t>(home.rank)];
  }
  auto training =
      mean_over_ranks(std::move(own.training), {.ranks = replicas, .order = request.order});
  training = data_parallel(std::move(training), {.world_size = replicas, .order = request.order});
  RankGraph result{std::move(training.graph), std::move(own.homes)};
  result.share = replica;
  result.cut = std::move(own.cut);
  result.inexact = std::move(part.inexact);
  return result;
}

/// The graph of a single rank: its micro-batches, where the strategy has some, are those that
/// several ranks would pass on, so that the weights do not depend on the number of ranks.
RankGraph make_alone(const Strategy& strategy, const StrategyRequest& request) {
  const bool pipe = strategy.kind == Strategy::Kind::Pipeline && strategy.micro_batches > 1;
  auto part =
      pipe ? step_of_part(request, {.count = strategy.micro_batches, .what = "micro-batches"})
           : step_of_rank(request);
  if (pipe)
    part.training =
        pipeline(part.training, {.micro_batches = strategy.micro_batches, .order = strategy.order})
            .training;
  RankGraph result{std::move(part.training.graph)};  // all states are at home here
  result.inexact = std::move(part.inexact);
  return result;
}

/// One of several groups that share each layer, each group with a share of the batch.
RankGraph make_layer_parts(const Strategy& strategy, const StrategyRequest& request) {
  const auto& mesh = strategy.mesh;
  const int replicas = mesh.size("dp");
  const int replica = mesh.place("dp", request.rank);
  auto part = step_of_part(request, {.count = replicas, .what = "replicas", .first = replica});
  part.training =
      mean_over_ranks(std::move(part.training), {.ranks = replicas, .order = request.order});
  auto own = tensor_parallel(part.training,
                             {.parts = request.world_size / replicas,
                              .place = mesh.empty() ? request.rank : mesh.place("tp", request.rank),
                              .order = request.order});
  auto training =
      data_parallel(std::move(own.training), {.world_size = replicas, .order = request.order});
  RankGraph result{std::move(training.graph), std::move(own.homes)};
  result.share = replica;
  result.without_rule = std::move(own.without_rule);
  result.inexact = std::move(part.inexact);
  return result;
}

/// Data parallelism with the same bits for every number of ranks.
RankGraph make_sharded_batch(const Strategy& strategy, const StrategyRequest& request) {
  const auto is_power = [](int n) { return std::has_single_bit(static_cast<unsigned>(n)); };
  if (strategy.kind != Strategy::Kind::Replicated || request.order != ReductionOrder::ShardTree ||
      !is_power(request.shards) || !is_power(request.world_size) || !is_power(request.accumulate) ||
      request.shards < request.world_size) {
    throw InvalidArgument(fmt::format(
        "{} shards over {} ranks, {} micro-batches each, added {}: shards go with the "
        "strategy dp and the order shard-tree, and their number, that of the ranks, "
        "which is no larger, and that of the micro-batches are powers of two",
        request.shards, request.world_size, request.accumulate, name_of(request.order)));
  }
  const int parts = request.shards * request.accumulate;
  const char* const what = request.accumulate > 1 ? "micro-batches" : "shards";
  const int micro = parts / request.world_size;
  auto part = step_of_part(request, {.count = parts, .what = what, .first = request.rank * micro});
  auto own = pipeline(part.training, {.micro_batches = micro, .tree = true});
  auto training = mean_over_ranks(std::move(own.training),
                                  {.ranks = request.world_size, .order = request.order});
  training = data_parallel(std::move(training),
                           {.world_size = request.world_size, .order = request.order});
  RankGraph result{std::move(training.graph)};
  result.inexact = std::move(part.inexact);
  return result;
}

/// A worker, or the server that is one or only serves.
RankGraph make_with_server(const Strategy& strategy, const StrategyRequest& request) {
  const bool central = strategy.kind == Strategy::Kind::Central;
  const int idle = central ? 1 : 0;
  const int workers = request.world_size - idle;
  auto part = step_of_part(
      request, {.count = workers, .what = "workers", .first = std::max(0, request.rank - idle)});
  const auto training = mean_over_ranks(std::move(part.training), {.ranks = workers});
  auto result = parameter_server(
      training, {.world_size = request.world_size, .rank = request.rank, .central = central});
  result.inexact = std::move(part.inexact);
  return result;
}

/// One of several that have the same parameters after each step, whole or in parts, or average
/// them now and then.
RankGraph make_replica(const Strategy& strategy, const StrategyRequest& request) {
  const bool apart = strategy.kind == Strategy::Kind::LocalSgd;
  const bool nodes = strategy.kind == Strategy::Kind::Hierarchical;
  auto part = step_of_rank(request, apart);
  RankMeanOptions means = {.ranks = apart ? 1 : request.world_size, .order = request.order};
  if (nodes) means.axes = {"device", "node"};
  part.training = mean_over_ranks(std::move(part.training), means);
  RankGraph result;
  if (strategy.kind == Strategy::Kind::Sharded) {
    result = shard(part.training, {.stage = strategy.shard_stage,
                                   .world_size = request.world_size,
                                   .rank = request.rank,
                                   .order = request.order});
  } else {
    result.graph = data_parallel(std::move(part.training),
                                 {.world_size = request.world_size,
                                  .order = request.order,
                                  .devices_per_node = nodes ? strategy.mesh.size("device") : 0,
                                  .gradients = !apart})
                       .graph;
  }
  result.inexact = std::move(part.inexact);
  return result;
}

}  // namespace

RankGraph make_rank_graph(const Strategy& strategy, const StrategyRequest& request) {
  validate(strategy);
  require_accumulation(strategy, request.accumulate);
  if (request.shards > 0) return make_sharded_batch(strategy, request);
  if (request.world_size == 1) return make_alone(strategy, request);
  const bool adds_parts =
      strategy.kind == Strategy::Kind::Sharded || strategy.kind == Strategy::Kind::Tensor;
  if (request.order == ReductionOrder::ShardTree && adds_parts) {
    throw InvalidArgument(
        "the order shard-tree adds whole gradients, and this strategy needs parts of sums; choose "
        "the order ring or rank-ordered, or the strategy dp");
  }
  const auto& mesh = strategy.mesh;
  if (!mesh.empty() && mesh.ranks() != request.world_size) {
    throw InvalidArgument(fmt::format(
        "the mesh has {} ranks, and the run {}; change the option mesh or the option ranks",
        mesh.ranks(), request.world_size));
  }
  if (strategy.kind == Strategy::Kind::Pipeline) return make_stage(strategy, request);
  if (strategy.kind == Strategy::Kind::Tensor) return make_layer_parts(strategy, request);
  if (strategy.kind == Strategy::Kind::Server || strategy.kind == Strategy::Kind::Central)
    return make_with_server(strategy, request);
  if (asynchronous(strategy)) {
    const auto part = step_of_part(request, {.count = request.world_size - 1,
                                             .what = "workers",
                                             .first = std::max(0, request.rank - 1),
                                             .apart = true});
    return strategy.kind == Strategy::Kind::AsyncServer
               ? asynchronous_gradients(part.training, request.rank)
               : asynchronous_averages(part.training, request.rank);
  }
  return make_replica(strategy, request);
}

}  // namespace triptych::parallel
