// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/rank_graph.h"

#include <fmt/format.h>

#include <charconv>

#include "parallel/strategies/data_parallel.h"
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

}  // namespace

Strategy strategy_from_string(std::string_view text) {
  using Kind = Strategy::Kind;
  Strategy strategy;
  if (text == "dp") return strategy;
  for (int stage = 1; stage <= 3; ++stage) {
    if (text != fmt::format("zero{}", stage)) continue;
    return {.kind = Kind::Sharded, .shard_stage = stage};
  }
  if (text == "layers") return {.kind = Kind::Pipeline};
  constexpr std::string_view prefix = "pipeline:";
  if (text.starts_with(prefix)) {
    strategy.kind = Kind::Pipeline;
    auto rest = text.substr(prefix.size());
    const auto comma = rest.find(',');
    const auto order = comma == std::string_view::npos ? "1f1b" : rest.substr(comma + 1);
    rest = rest.substr(0, comma);
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), strategy.micro_batches);
    const bool is_number = error == std::errc{} && end == rest.data() + rest.size();
    if (order == "gpipe") strategy.order = PipelineOrder::GPipe;
    if (is_number && strategy.micro_batches > 0 && (order == "gpipe" || order == "1f1b"))
      return strategy;
  }
  throw InvalidArgument(fmt::format(
      "no strategy \"{}\"; choose from: dp, zero1, zero2, zero3, layers, pipeline:MICRO-BATCHES or "
      "pipeline:MICRO-BATCHES,gpipe",
      text));
}

RankGraph make_rank_graph(const Strategy& strategy, const StrategyRequest& request) {
  if (request.world_size == 1)
    return {build_training_graph(request.model, request.options).graph, {}};
  if (strategy.kind == Strategy::Kind::Pipeline) {
    return pipeline(step_of_part(request, strategy.micro_batches, "micro-batches"),
                    pipeline_options(strategy, request));
  }
  auto training = step_of_part(request, request.world_size, "ranks");
  if (strategy.kind == Strategy::Kind::Sharded) {
    return shard(training, {.stage = strategy.shard_stage,
                            .world_size = request.world_size,
                            .rank = request.rank,
                            .order = request.order});
  }
  auto parallel = data_parallel(std::move(training),
                                {.world_size = request.world_size, .order = request.order});
  return {std::move(parallel.graph), {}};
}

}  // namespace triptych::parallel
