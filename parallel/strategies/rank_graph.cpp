// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/rank_graph.h"

#include <fmt/format.h>

#include <charconv>

#include "parallel/strategies/data_parallel.h"
#include "parallel/strategies/parameter_server.h"
#include "parallel/strategies/pipeline.h"
#include "parallel/strategies/sharded.h"

namespace triptych::parallel {
namespace {

/// The step of a part of the batch, `parts` of which make it whole.
TrainingGraph step_of_part(const StrategyRequest& request, int parts, const char* what) {
  auto options = request.options;
  if (options.batch % parts != 0) {
    throw InvalidArgument(fmt::format(
        "a batch of {} cannot be shared out evenly over {} {}; change --batch or {}", options.batch,
        parts, what, parts == request.world_size ? "--ranks" : "--parallel"));
  }
  options.batch /= parts;
  return build_training_graph(request.model, options);
}

PipelineOptions pipeline_options(const Strategy& strategy, const StrategyRequest& request) {
  return {.stages = request.world_size,
          .stage = request.rank,
          .micro_batches = strategy.micro_batches,
          .order = strategy.order,
          .node_seconds = request.node_seconds};
}

/// 0 when it is none.
int number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

}  // namespace

Strategy strategy_from_string(std::string_view text) {
  using Kind = Strategy::Kind;
  Strategy strategy;
  if (text == "dp") return strategy;
  for (int stage = 1; stage <= 3; ++stage) {
    if (text != fmt::format("zero{}", stage)) continue;
    return {.kind = Kind::Sharded, .shard_stage = stage};
  }
  if (text == "ps-sync") return {.kind = Kind::Server};
  if (text == "central") return {.kind = Kind::Central};
  constexpr std::string_view local = "local-sgd:";
  if (text.starts_with(local)) {
    const auto period = number_of(text.substr(local.size()));
    if (period > 0) return {.kind = Kind::LocalSgd, .period = period};
  }
  if (text == "layers") return {.kind = Kind::Pipeline};
  constexpr std::string_view prefix = "pipeline:";
  if (text.starts_with(prefix)) {
    strategy.kind = Kind::Pipeline;
    auto rest = text.substr(prefix.size());
    const auto comma = rest.find(',');
    const auto order = comma == std::string_view::npos ? "1f1b" : rest.substr(comma + 1);
    rest = rest.substr(0, comma);
    strategy.micro_batches = number_of(rest);
    if (order == "gpipe") strategy.order = PipelineOrder::GPipe;
    if (strategy.micro_batches > 0 && (order == "gpipe" || order == "1f1b")) return strategy;
  }
  throw InvalidArgument(fmt::format(
      "no strategy \"{}\"; choose from: dp, zero1, zero2, zero3, layers, pipeline:MICRO-BATCHES, "
      "pipeline:MICRO-BATCHES,gpipe, ps-sync, central, local-sgd:STEPS",
      text));
}

RankGraph make_rank_graph(const Strategy& strategy, const StrategyRequest& request) {
  if (request.world_size == 1)
    return {build_training_graph(request.model, request.options).graph, {}};
  if (strategy.kind == Strategy::Kind::Pipeline) {
    return pipeline(step_of_part(request, strategy.micro_batches, "micro-batches"),
                    pipeline_options(strategy, request));
  }
  if (strategy.kind == Strategy::Kind::Server || strategy.kind == Strategy::Kind::Central) {
    const bool central = strategy.kind == Strategy::Kind::Central;
    const auto training = step_of_part(request, request.world_size - (central ? 1 : 0), "workers");
    return parameter_server(
        training, {.world_size = request.world_size, .rank = request.rank, .central = central});
  }
  auto training = step_of_part(request, request.world_size, "ranks");
  if (strategy.kind == Strategy::Kind::Sharded) {
    return shard(training, {.stage = strategy.shard_stage,
                            .world_size = request.world_size,
                            .rank = request.rank,
                            .order = request.order});
  }
  auto parallel =
      data_parallel(std::move(training), {.world_size = request.world_size,
                                          .order = request.order,
                                          .gradients = strategy.kind != Strategy::Kind::LocalSgd});
  return {std::move(parallel.graph), {}};
}

}  // namespace triptych::parallel
