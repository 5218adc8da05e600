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
#include "parallel/strategies/tensor_parallel.h"

namespace triptych::parallel {
namespace {

/// The step of a part of the batch, `parts` of which make it whole.
TrainingGraph step_of_part(const StrategyRequest& request, int parts, const char* what) {
  if (request.batch % parts != 0) {
    throw InvalidArgument(fmt::format(
        "a batch of {} cannot be shared out evenly over {} {}; change the option batch or {}",
        request.batch, parts, what,
        parts == request.world_size ? "the option ranks"
        : parts == request.shards   ? "the option shards"
                                    : "the option parallel"));
  }
  return request.step(request.batch / parts);
}

/// One of several pipelines, each with a share of the batch, when the mesh has an axis "dp".
RankGraph make_stage(const Strategy& strategy, const StrategyRequest& request) {
  const auto& mesh = strategy.mesh;
  const int replicas = mesh.size("dp");
  const int stages = request.world_size / replicas;
  const int stage = mesh.empty() ? request.rank : mesh.place("pp", request.rank);
  auto own = pipeline(step_of_part(request, replicas * strategy.micro_batches, "micro-batches"),
                      {.stages = stages,
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
      data_parallel(std::move(own.training), {.world_size = replicas, .order = request.order});
  RankGraph result{std::move(training.graph), std::move(own.homes)};
  result.share = mesh.place("dp", request.rank);
  result.cut = std::move(own.cut);
  return result;
}

/// The graph of a rank that is the only one: its micro-batches, where the strategy has some, are
/// what several ranks would pass on, so that the weights do not depend on how many there are.
RankGraph make_alone(const Strategy& strategy, const StrategyRequest& request) {
  if (strategy.kind != Strategy::Kind::Pipeline || strategy.micro_batches == 1)
    return {request.step(request.batch).graph, {}};
  auto own = pipeline(step_of_part(request, strategy.micro_batches, "micro-batches"),
                      {.micro_batches = strategy.micro_batches, .order = strategy.order});
  return {std::move(own.training.graph), {}};  // all states are at home here
}

/// One of several groups that share each layer, each group with a share of the batch.
RankGraph make_layer_parts(const Strategy& strategy, const StrategyRequest& request) {
  const auto& mesh = strategy.mesh;
  const int replicas = mesh.size("dp");
  auto own = tensor_parallel(step_of_part(request, replicas, "replicas"),
                             {.parts = request.world_size / replicas,
                              .place = mesh.empty() ? request.rank : mesh.place("tp", request.rank),
                              .order = request.order});
  auto training =
      data_parallel(std::move(own.training), {.world_size = replicas, .order = request.order});
  RankGraph result{std::move(training.graph), std::move(own.homes)};
  result.share = mesh.place("dp", request.rank);
  result.without_rule = std::move(own.without_rule);
  return result;
}

/// Data parallelism whose bits do not depend on the number of ranks.
RankGraph make_sharded_batch(const Strategy& strategy, const StrategyRequest& request) {
  const auto is_power = [](int n) { return std::has_single_bit(static_cast<unsigned>(n)); };
  if (strategy.kind != Strategy::Kind::Replicated || request.order != ReductionOrder::ShardTree ||
      !is_power(request.shards) || !is_power(request.world_size) ||
      request.shards < request.world_size) {
    throw InvalidArgument(
        fmt::format("{} shards over {} ranks, added {}: shards go with the strategy dp and the "
                    "order shard-tree, "
                    "and their number and that of the ranks, which is no larger, are powers of two",
                    request.shards, request.world_size, name_of(request.order)));
  }
  auto own = pipeline(step_of_part(request, request.shards, "shards"),
                      {.micro_batches = request.shards / request.world_size, .tree = true});
  auto parallel = data_parallel(std::move(own.training),
                                {.world_size = request.world_size, .order = request.order});
  return {std::move(parallel.graph)};
}

}  // namespace

RankGraph make_rank_graph(const Strategy& strategy, const StrategyRequest& request) {
  validate(strategy);
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
  if (strategy.kind == Strategy::Kind::Server || strategy.kind == Strategy::Kind::Central) {
    const bool central = strategy.kind == Strategy::Kind::Central;
    const auto training = step_of_part(request, request.world_size - (central ? 1 : 0), "workers");
    return parameter_server(
        training, {.world_size = request.world_size, .rank = request.rank, .central = central});
  }
  if (asynchronous(strategy)) {
    const auto training = step_of_part(request, request.world_size - 1, "workers");
    return strategy.kind == Strategy::Kind::AsyncServer
               ? asynchronous_gradients(training, request.rank)
               : asynchronous_averages(training, request.rank);
  }
  auto training = step_of_part(request, request.world_size, "ranks");
  if (strategy.kind == Strategy::Kind::Sharded) {
    return shard(training, {.stage = strategy.shard_stage,
                            .world_size = request.world_size,
                            .rank = request.rank,
                            .order = request.order});
  }
  auto parallel = data_parallel(
      std::move(training),
      {.world_size = request.world_size,
       .order = request.order,
       .devices_per_node = strategy.kind == Strategy::Kind::Hierarchical ? mesh.size("device") : 0,
       .gradients = strategy.kind != Strategy::Kind::LocalSgd});
  return {std::move(parallel.graph), {}};
}

}  // namespace triptych::parallel
