// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/rank_graph.h"

#include <fmt/format.h>

#include "parallel/strategies/data_parallel.h"
#include "parallel/strategies/sharded.h"

namespace triptych::parallel {
namespace {

/// The step of a rank that gets an equal part of each batch.
TrainingGraph step_of_share(const StrategyRequest& request) {
  auto options = request.options;
  if (options.batch % request.world_size != 0) {
    throw InvalidArgument(fmt::format(
        "a batch of {} cannot be shared out evenly over {} ranks; change --batch or --ranks",
        options.batch, request.world_size));
  }
  options.batch /= request.world_size;
  return build_training_graph(request.model, options);
}

}  // namespace

RankGraph make_rank_graph(std::string_view strategy, const StrategyRequest& request) {
  auto training = step_of_share(request);
  if (request.world_size == 1) return {std::move(training.graph), {}};
  if (strategy == "dp") {
    auto parallel = data_parallel(std::move(training),
                                  {.world_size = request.world_size, .order = request.order});
    return {std::move(parallel.graph), {}};
  }
  for (int stage = 1; stage <= 3; ++stage) {
    if (strategy != fmt::format("zero{}", stage)) continue;
    return shard(training, {.stage = stage,
                            .world_size = request.world_size,
                            .rank = request.rank,
                            .order = request.order});
  }
  throw InvalidArgument(
      fmt::format("no strategy \"{}\"; choose from: dp, zero1, zero2, zero3", strategy));
}

}  // namespace triptych::parallel
