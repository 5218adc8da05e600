// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/sharded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/collectives.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

/// The state of all ranks, its parts put together.
std::vector<float> whole(const std::vector<Outcome>& ranks, const std::string& name,
                         std::int64_t elements) {
  std::vector<float> values;
  for (const auto& rank : ranks) {
    const auto part = rank.states.at(name).as<float>();
    values.insert(values.end(), part.begin(), part.end());
  }
  values.resize(static_cast<std::size_t>(elements));
  return values;
}

class ShardStages : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(ShardStages, have_the_bits_of_data_parallelism) {
  const auto [stage, ranks] = GetParam();
  for (const char* order : {"rank-ordered", "ring"}) {
    const auto replicas = train_ranks("dp", ranks, order);
    const auto shards = train_ranks("zero" + std::to_string(stage), ranks, order);
    // A ring begins elsewhere when its chunks are cut elsewhere.
    if (std::string_view(order) == "ring" && ranks > 2) {
      EXPECT_NEAR(shards[0].losses.back(), replicas[0].losses.back(), 1e-3);
      continue;
    }
    EXPECT_EQ(shards[0].losses, replicas[0].losses) << order;
    for (const auto& [name, state] : replicas[0].states) {
      if (name.ends_with("running_mean") || name.ends_with("running_var")) continue;
      const auto values = state.as<float>();
      EXPECT_EQ(whole(shards, name, state.shape().elements()),
                std::vector(values.begin(), values.end()))
          << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sharded, ShardStages,
                         testing::Combine(testing::Values(1, 2, 3), testing::Values(2, 4)));

/// Bytes of the plan of rank 0 of `ranks`, each with one image.
struct Memory {
  double total, states;
};
Memory memory_of(std::string_view strategy, int ranks) {
  auto model = small_model();
  model.base = 32;
  model.depth = 3;
  ThreadGroup group(ranks, Seconds(1));
  Communicator communicator(group.transport(0));
  RankCollectives collectives(communicator);
  const auto device = open_device("cpu", {.threads = 1});
  auto own =
      make_rank_graph(strategy_from_string(strategy),
                      {.step = training_step(model, {}), .batch = ranks, .world_size = ranks});
  PlanOptions options;
  options.placement.collectives = &collectives;
  const auto plan = make_plan(std::move(own.graph), {device.get()}, options);
  return {static_cast<double>(plan.total_bytes(0)), static_cast<double>(plan.state_bytes[0])};
}

/// Bytes of the largest sum over a bucket of ShardOptions' size, and of all parameters.
struct Parameters {
  double all = 0, bucket = 0;
};
Parameters parameters_of(int ranks) {
  auto model = small_model();
  model.base = 32;
  model.depth = 3;
  const auto own =
      make_rank_graph(strategy_from_string("zero3"),
                      {.step = training_step(model, {}), .batch = ranks, .world_size = ranks});
  Parameters parameters;
  for (const auto& node : own.graph.nodes()) {
    if (op_cast<AllGather>(*node.op) == nullptr) continue;
    double bytes = 0;
    for (const auto output : node.outputs)
      bytes += static_cast<double>(own.graph.spec(output).bytes());
    parameters.all += bytes / 2;  // each is gathered 2 times
    parameters.bucket = std::max(parameters.bucket, bytes);
  }
  return parameters;
}

TEST(Sharded, memory_falls_as_the_formula_says) {
  // 12 bytes of 16 per parameter stay, 4 are gradients. A bucket has the parameters or gradients,
  // and the message.
  const auto formula = [](int n) {
    const auto [all, bucket] = parameters_of(n);
    return 4 * all / n + 2 * bucket;
  };
  // Not of one rank: its gradients lie where activations were.
  const double activations = memory_of("zero3", 2).total - formula(2);
  EXPECT_GT(activations, 0);
  EXPECT_LT(activations, memory_of("dp", 1).total - memory_of("dp", 1).states);
  for (const int n : {2, 4, 8}) {
    const auto plan = memory_of("zero3", n);
    const double expected = activations + formula(n);
    EXPECT_NEAR(plan.total, expected, 0.1 * expected) << n << " ranks";
    EXPECT_NEAR(plan.states, 3 * parameters_of(n).all / n, 0.02 * plan.states + 1e5);
    EXPECT_LT(plan.total, memory_of("zero2", n).total);
    EXPECT_LT(memory_of("zero2", n).total, memory_of("zero1", n).total);
    EXPECT_LT(memory_of("zero1", n).total, memory_of("dp", n).total);
  }
}

TEST(Sharded, refuses_what_it_cannot_do) {
  for (const char* wrong :
       {"zero4", "zero", "ddp", "pipeline", "pipeline:0", "pipeline:2x", "pipeline:2,zigzag"})
    EXPECT_THROW(strategy_from_string(wrong), InvalidArgument) << wrong;
  EXPECT_THAT([] { train_ranks("zero3", 2, "shard-tree"); },
              testing::ThrowsMessage<InvalidArgument>(
                  testing::HasSubstr("choose the order ring or rank-ordered")));
  EXPECT_THROW(train_ranks("zero1", 3, "ring"), InvalidArgument) << "a batch of 4 over 3 ranks";
}

}  // namespace
}  // namespace triptych::parallel
