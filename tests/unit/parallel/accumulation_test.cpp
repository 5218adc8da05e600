// Micro-batches that one rank runs one after another before it updates its parameters.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/graph/passes/passes.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

constexpr std::int64_t kImages = 8;

std::vector<Outcome> train(std::string_view strategy, int ranks, int accumulate,
                           const RunOptions& options = {},
                           const std::string& order = "rank-ordered") {
  auto run = options;
  run.batch = kImages;
  run.accumulate = accumulate;
  return train_ranks(strategy, ranks, order, run);
}

bool is_statistic(const std::string& name) {
  return name.ends_with("running_mean") || name.ends_with("running_var");
}

void expect_same(const Outcome& a, const Outcome& b, bool statistics) {
  EXPECT_EQ(a.losses, b.losses);
  for (const auto& [name, state] : a.states) {
    if (!statistics && is_statistic(name)) continue;
    EXPECT_TRUE(std::ranges::equal(state.bytes(), b.states.at(name).bytes())) << name;
  }
}

/// A model with independent images, unlike one with batch normalisation.
TrainingStep independent_images() {
  auto model = model_preset("mlp");
  model.base = 8;
  model.size = 8;
  return training_step(model, {.seed = 3});
}

TEST(Accumulation, of_independent_images_is_the_step_of_the_whole_batch) {
  const RunOptions options = {.step = independent_images()};
  const auto whole = train("dp", 1, 1, options)[0].losses;
  for (const int parts : {2, 4, 8}) {
    const auto losses = train("dp", 1, parts, options)[0].losses;
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(losses[i], whole[i], 1e-6) << parts;
  }
}

TEST(Accumulation, on_one_rank_has_the_weights_of_as_many_ranks) {
  expect_same(train("dp", 1, 4)[0], train("dp", 4, 1)[0], false);
  expect_same(train("dp", 1, 4)[0], train("dp", 1, 4)[0], true);
}

TEST(Accumulation, on_every_rank_of_a_tree_has_the_bits_of_one) {
  for (const int ranks : {2, 4}) {
    for (const auto& rank : train("dp", ranks, 8 / ranks, {}, "shard-tree"))
      expect_same(rank, train("dp", 1, 8, {}, "shard-tree")[0], true);
  }
}

TEST(Accumulation, of_shards_has_the_same_bits_on_any_number_of_ranks) {
  const RunOptions options = {.shards = 4};
  const auto alone = train("dp", 1, 2, options, "shard-tree");
  for (const int ranks : {2, 4})
    expect_same(train("dp", ranks, 2, options, "shard-tree")[0], alone[0], true);
  EXPECT_NE(train("dp", 1, 1, options, "shard-tree")[0].losses, alone[0].losses);
  EXPECT_THROW(train("dp", 1, 3, options, "shard-tree"), InvalidArgument);
}

TEST(Accumulation, goes_with_every_strategy_that_replicates) {
  const auto dp = train("dp", 2, 2);
  expect_same(train("ddp2d", 2, 2, {.mesh = "node=1,device=2"})[0], dp[0], false);
  const auto apart = train("local-sgd:1", 2, 2);
  EXPECT_LT(apart[0].losses.back(), apart[0].losses.front());
  for (const auto* other : {"zero1", "zero3", "layers", "pipeline:2", "tp", "ps-sync", "central",
                            "ps-async", "local-sgd-async"}) {
    const StrategyRequest request = {.step = training_step(small_model(), {}),
                                     .batch = kImages,
                                     .world_size = 2,
                                     .accumulate = 2};
    try {
      make_rank_graph(strategy_from_string(other), request);
      ADD_FAILURE() << other;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("accumulate")) << other;
    }
  }
}

TEST(Accumulation, needs_the_memory_of_one_micro_batch) {
  auto model = small_model();
  model.base = 8;
  const auto bytes = [&](int accumulate) {
    const StrategyRequest request = {
        .step = training_step(model, {}), .batch = kImages, .accumulate = accumulate};
    return peak_activation_bytes(make_rank_graph(strategy_from_string("dp"), request).graph);
  };
  EXPECT_LT(5 * bytes(8), bytes(1));
}

TEST(Accumulation, refuses_a_batch_that_it_cannot_cut) {
  try {
    train("dp", 2, 3);
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("a batch of 8 cannot be shared out evenly over 6"));
    EXPECT_THAT(error.what(), testing::HasSubstr("accumulate"));
  }
}

}  // namespace
}  // namespace triptych::parallel
