// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/parameter_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

bool is_statistic(std::string_view name) {
  return name.ends_with("running_mean") || name.ends_with("running_var");
}

void expect_same_parameters(const Outcome& a, const Outcome& b) {
  for (const auto& [name, state] : a.states) {
    if (is_statistic(name)) continue;
    EXPECT_TRUE(std::ranges::equal(state.bytes(), b.states.at(name).bytes())) << name;
  }
}

TEST(ParameterServer, has_the_bits_of_data_parallelism) {
  for (const int ranks : {2, 4}) {
    const auto replicas = train_ranks("dp", ranks, "rank-ordered");
    const auto server = train_ranks("ps-sync", ranks, "rank-ordered");
    for (const auto& rank : server) EXPECT_EQ(rank.losses, replicas[0].losses);
    expect_same_parameters(replicas[0], server[0]);
    for (std::size_t rank = 1; rank < server.size(); ++rank)
      for (const auto& [name, state] : server[rank].states)
        EXPECT_TRUE(is_statistic(name)) << name << " is the server's";
  }
}

TEST(ParameterServer, that_only_stores_has_the_bits_of_its_workers_alone) {
  const auto replicas = train_ranks("dp", 2, "rank-ordered");
  const auto central = train_ranks("central", 3, "rank-ordered");
  for (const auto& rank : central) EXPECT_EQ(rank.losses, replicas[0].losses);
  for (const auto& [name, state] : central[0].states) {
    EXPECT_FALSE(is_statistic(name)) << name;
    EXPECT_TRUE(std::ranges::equal(state.bytes(), replicas[0].states.at(name).bytes())) << name;
  }
}

TEST(ParameterServer, keeps_little_on_the_workers) {
  auto model = small_model();
  model.base = 32;
  model.depth = 3;
  const auto states = [&](const char* strategy, int rank) {
    const auto own = make_rank_graph(
        strategy_from_string(strategy),
        {.step = training_step(model, {}), .batch = 6, .world_size = 3, .rank = rank});
    verify(own.graph);
    std::size_t bytes = 0;
    for (const auto state : own.graph.values_of(ValueKind::State))
      bytes += own.graph.spec(state).bytes();
    return static_cast<double>(bytes);
  };
  const double replica = states("dp", 0);
  EXPECT_NEAR(states("ps-sync", 0), replica, 1);
  EXPECT_LT(states("ps-sync", 1), 0.01 * replica) << "running statistics alone";
  EXPECT_LT(states("central", 2), 0.01 * replica);
  EXPECT_LT(states("central", 0), replica) << "no running statistics";
}

TEST(LocalSgd, averages_the_loss_alone) {
  const auto apart = train_ranks("local-sgd:2", 2, "rank-ordered");
  EXPECT_EQ(apart[0].losses, apart[1].losses);
  int different = 0;
  for (const auto& [name, state] : apart[0].states)
    different += !std::ranges::equal(state.bytes(), apart[1].states.at(name).bytes());
  EXPECT_GT(different, 5) << "until somebody averages them";
  EXPECT_THROW(strategy_from_string("local-sgd:0"), InvalidArgument);
}

}  // namespace
}  // namespace triptych::parallel
