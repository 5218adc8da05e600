// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/tensor_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/ops/collectives.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

TEST(StateParts, are_put_together_again) {
  std::vector<float> values(2 * 6 * 5);
  std::iota(values.begin(), values.end(), 0.0F);
  const Tensor whole(Shape{2, 6, 5}, values);
  for (const std::int64_t split : {-1, 0, 1}) {
    const int parts = split == 0 ? 2 : 3;
    std::vector<std::byte> all;
    for (int part = 0; part < parts; ++part) {
      const auto own = part_of_tensor(whole, part, parts, split);
      all.insert(all.end(), own.bytes().begin(), own.bytes().end());
    }
    EXPECT_THAT(join_parts(all, whole.spec(), parts, split).as<float>(),
                testing::ElementsAreArray(values))
        << split;
  }
  const std::vector<std::byte> short_of_one(whole.bytes().begin(), whole.bytes().end() - 1);
  EXPECT_THROW(join_parts(short_of_one, whole.spec(), 3, 1), InvalidArgument);
  EXPECT_THROW(join_parts(whole.bytes(), whole.spec(), 4, 1), InvalidArgument) << "6 into 4";
  const auto columns = part_of_tensor(whole, 1, 3, 1);
  EXPECT_EQ(columns.shape(), (Shape{2, 2, 5}));
  EXPECT_EQ(columns.as<float>()[10], 40) << "the second image's third channel";
}

/// The largest difference of a state, its parts put together, from the one that a rank alone has.
float difference(const std::vector<Outcome>& ranks, const RankGraph& graph, const std::string& name,
                 const Tensor& alone) {
  const auto home = graph.homes.find(name);
  std::vector<std::byte> bytes;
  for (const auto& rank : ranks) {
    const auto own = rank.states.at(name).bytes();
    bytes.insert(bytes.end(), own.begin(), own.end());
    if (home == graph.homes.end()) break;
  }
  const auto whole = home == graph.homes.end()
                         ? join_parts(bytes, alone.spec(), 1)
                         : join_parts(bytes, home->second.whole, static_cast<int>(ranks.size()),
                                      home->second.split);
  float most = 0;
  for (std::size_t i = 0; i < whole.as<float>().size(); ++i)
    most = std::max(most, std::abs(whole.as<float>()[i] - alone.as<float>()[i]));
  return most;
}

RankGraph graph_of(std::string_view strategy, int ranks, const ModelConfig& model) {
  return make_rank_graph(strategy_from_string(strategy),
                         {.step = training_step(model, {}), .batch = kBatch, .world_size = ranks});
}

template <class T>
std::ptrdiff_t count(const Graph& graph) {
  return std::ranges::count_if(graph.nodes(),
                               [](const Node& node) { return op_cast<T>(*node.op) != nullptr; });
}

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, trains_as_one_rank_does) {
  const int ranks = GetParam();
  const auto alone = train_ranks("dp", 1, "rank-ordered");
  const auto parts = train_ranks("tp", ranks, "rank-ordered");
  EXPECT_EQ(parts[0].losses[0], alone[0].losses[0]) << "outputs are whole chains";
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(parts[0].losses[static_cast<std::size_t>(step)],
                alone[0].losses[static_cast<std::size_t>(step)], 1e-4);
    for (const auto& rank : parts) EXPECT_EQ(rank.losses, parts[0].losses);
  }
  const auto graph = graph_of("tp", ranks, small_model());
  for (const auto& [name, state] : alone[0].states)
    EXPECT_LT(difference(parts, graph, name, state), 2e-3) << name;
}

// Two channels are too few for four ranks: that layer is whole on all.
INSTANTIATE_TEST_SUITE_P(TensorParallel, Ranks, testing::Values(2, 4));

TEST(TensorParallel, goes_with_data_parallelism) {
  const auto replicas = train_ranks("dp", 2, "rank-ordered");
  const auto both = train_ranks("tp", 4, "rank-ordered", {.mesh = "dp=2,tp=2"});
  EXPECT_EQ(both[0].losses[0], replicas[0].losses[0]);
  for (const auto& rank : both) {
    EXPECT_EQ(rank.losses, both[0].losses);
    EXPECT_NEAR(rank.losses.back(), replicas[0].losses.back(), 1e-4);
  }
  EXPECT_THROW(strategy_from_string("tp", "dp=2,pp=2"), InvalidArgument);
}

TEST(TensorParallel, a_pair_of_products_has_one_sum) {
  auto model = model_preset("mlp");
  const auto graph = graph_of("tp", 2, model).graph;
  EXPECT_EQ(count<AllReduce>(graph), 1) << "behind the second product";
  EXPECT_EQ(count<AllGather>(graph) + count<ReduceScatter>(graph), 0);
  model.depth = 4;  // two pairs: one sum each, forward, and one backward between them
  EXPECT_EQ(count<AllReduce>(graph_of("tp", 2, model).graph), 3);
}

TEST(TensorParallel, each_rank_has_a_part_of_the_states) {
  auto model = model_preset("unet-s");
  const auto bytes = [](const RankGraph& own) {
    double sum = 0;
    for (const auto state : own.graph.values_of(ValueKind::State))
      sum += static_cast<double>(own.graph.spec(state).bytes());
    return sum;
  };
  const auto alone = bytes(graph_of("dp", 1, model));
  for (const int ranks : {2, 4, 8}) {
    EXPECT_NEAR(bytes(graph_of("tp", ranks, model)), alone / ranks, 0.01 * alone);
  }
}

}  // namespace
}  // namespace triptych::parallel
