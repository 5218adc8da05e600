// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/graph/passes/passes.h"
#include "core/ops/collectives.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Pass forward(int m) { return {true, m}; }
constexpr Pass backward(int m) { return {false, m}; }

TEST(Pipeline, passes_in_the_order_of_its_kind) {
  PipelineOptions options = {.stages = 3, .stage = 1, .micro_batches = 4};
  EXPECT_THAT(pipeline_passes(options),
              ElementsAre(forward(0), forward(1), backward(0), forward(2), backward(1), forward(3),
                          backward(2), backward(3)));
  options.stage = 2;
  EXPECT_THAT(pipeline_passes(options),
              ElementsAre(forward(0), backward(0), forward(1), backward(1), forward(2), backward(2),
                          forward(3), backward(3)));
  options.order = PipelineOrder::GPipe;
  EXPECT_THAT(pipeline_passes(options),
              ElementsAre(forward(0), forward(1), forward(2), forward(3), backward(0), backward(1),
                          backward(2), backward(3)));
}

TEST(Pipeline, cuts_where_the_costs_balance) {
  const auto training = build_training_graph(small_model(), {.batch = 2});
  PipelineOptions options = {.stages = 2};
  for (const auto& node : training.graph.nodes()) options.node_seconds[node.name] = 0;
  options.node_seconds["down1.conv0"] = 1;
  options.node_seconds["grad.head.convweightgradient"] = 2;
  options.node_seconds["bottom.conv1"] = 1.5;
  const auto stages = cut_stages(training, options);
  const auto stage_of = [&](const char* name) {
    for (const auto& node : training.graph.nodes())
      if (node.name == name) return stages.at(node.id.index());
    return -1;
  };
  EXPECT_EQ(stage_of("down1.conv0"), 0);
  EXPECT_EQ(stage_of("bottom.conv1"), 0) << "1 + 1.5 against 2: the other cut leaves 3.5";
  EXPECT_EQ(stage_of("head"), 1);
  EXPECT_TRUE(std::ranges::is_sorted(stages));
  EXPECT_EQ(stages.size(), 23) << "up to the loss";
}

TEST(Pipeline, counts_a_merged_node_once) {
  Node chain, conv;
  chain.name = "a+b+relu";
  chain.merged = {"a+b", "relu"};
  conv.name = "conv+1";
  std::map<std::string, double> seconds;
  add_node_seconds(seconds, chain, 2);
  add_node_seconds(seconds, conv, 1);
  const std::map<std::string, double> expected = {{"a+b", 2}, {"relu", 0}, {"conv+1", 1}};
  EXPECT_EQ(seconds, expected);
}

TEST(Pipeline, cuts_every_number_of_stages_without_an_empty_one) {
  const auto training = build_training_graph(small_model(), {.batch = 2});
  for (int n = 1; n <= 23; ++n) {
    const auto stages = cut_stages(training, {.stages = n});
    EXPECT_EQ(stages.front(), 0);
    EXPECT_EQ(stages.back(), n - 1);
    for (std::size_t i = 1; i < stages.size(); ++i) EXPECT_LE(stages[i] - stages[i - 1], 1);
  }
  EXPECT_THROW(cut_stages(training, {.stages = 24}), InvalidArgument);
}

/// Times of zero, all equal, one that outweighs the rest, or any: every stage has a node.
TEST(Pipeline, cuts_by_any_times_without_an_empty_stage) {
  const auto training = build_training_graph(small_model(), {.batch = 2});
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    PipelineOptions options = {.stages = 1 + round % 23};
    const auto& nodes = training.graph.nodes();
    const auto heavy = random() % nodes.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const double any = random() % 4 == 0 ? static_cast<double>(random() % 1000) : 0;
      const double times[] = {0, 1, i == heavy ? 1e9 : 1e-9, i == heavy ? 1.0 : 0.0, any};
      options.node_seconds[nodes[i].name] = times[round % 5];
    }
    const auto sizes = stage_sizes(cut_stages(training, options));
    EXPECT_EQ(sizes.size(), options.stages);
    EXPECT_GE(std::ranges::min(sizes), 1) << "round " << round;
  }
}

TEST(Pipeline, is_cut_as_it_was_before_whatever_the_nodes_take_now) {
  const auto training = build_training_graph(small_model(), {.batch = 2});
  PipelineOptions options = {.stages = 3, .cut = {1, 20, 2}};
  EXPECT_THAT(stage_sizes(cut_stages(training, options)), ElementsAre(1, 20, 2));
  const std::vector<std::vector<std::int64_t>> others = {
      {1, 20, 3}, {0, 21, 2}, {1, 22, 0}, {-1, 22, 2}, {1, 1, 1}, {1, std::int64_t{1} << 60, 2}};
  for (const auto& other : others) {
    options.cut = other;
    EXPECT_THROW(cut_stages(training, options), InvalidArgument);
  }
  options.cut = {11, 12};
  EXPECT_EQ(stage_sizes(cut_stages(training, options)).size(), 3) << "it was of two stages";
}

/// Each state from the stage that has it.
std::map<std::string, std::vector<float>> together(const std::vector<Outcome>& stages) {
  std::map<std::string, std::vector<float>> all;
  for (const auto& stage : stages) {
    for (const auto& [name, state] : stage.states) {
      const auto values = state.as<float>();
      const bool added = all.emplace(name, std::vector(values.begin(), values.end())).second;
      EXPECT_TRUE(added) << name << " is on two stages";
    }
  }
  return all;
}

class Stages : public testing::TestWithParam<int> {};

TEST_P(Stages, of_layers_have_the_bits_of_one_rank) {
  const auto alone = train_ranks("dp", 1, "rank-ordered");
  const auto stages = train_ranks("layers", GetParam(), "rank-ordered");
  for (const auto& stage : stages) EXPECT_EQ(stage.losses, alone[0].losses);
  EXPECT_EQ(together(stages), together(alone));
}

TEST_P(Stages, give_the_same_bits_however_the_passes_are_ordered) {
  const auto one_by_one = train_ranks("pipeline:4", GetParam(), "rank-ordered");
  const auto gpipe = train_ranks("pipeline:4,gpipe", GetParam(), "rank-ordered");
  EXPECT_EQ(one_by_one[0].losses, gpipe[0].losses);
  EXPECT_EQ(together(one_by_one), together(gpipe));
  // Where the model is cut changes nothing either.
  const auto other = train_ranks("pipeline:4", 2, "rank-ordered");
  EXPECT_EQ(together(one_by_one), together(other));
  const auto alone = train_ranks("dp", 1, "rank-ordered");
  for (std::size_t i = 0; i < alone[0].losses.size(); ++i)
    EXPECT_NEAR(one_by_one[0].losses[i], alone[0].losses[i], 0.05) << "statistics of micro-batches";
}

INSTANTIATE_TEST_SUITE_P(Pipeline, Stages, testing::Values(1, 2, 3, 5));

TEST(Pipeline, carries_skip_connections_straight_to_their_readers) {
  auto model = small_model();
  model.depth = 2;
  const StrategyRequest request = {.step = training_step(model, {}), .batch = 2, .world_size = 4};
  std::size_t sends = 0, skips = 0;
  for (int rank = 0; rank < 4; ++rank) {
    auto own = request;
    own.rank = rank;
    const auto graph = make_rank_graph(strategy_from_string("layers"), own).graph;
    verify(graph);
    for (const auto& node : graph.nodes()) {
      const auto* send = op_cast<Send>(*node.op);
      if (send == nullptr) continue;
      ++sends;
      if (std::abs(send->to - rank) > 1) ++skips;
    }
  }
  EXPECT_GT(skips, 0) << "from an encoder to a decoder some stages on";
  EXPECT_GT(sends, 6);
}

TEST(Pipeline, keeps_fewer_activations_with_1f1b) {
  auto model = small_model();
  model.base = 8;
  const auto training = build_training_graph(model, {.batch = 1});
  const auto bytes = [&](PipelineOrder order) {
    auto own = pipeline(training, {.stages = 2, .stage = 1, .micro_batches = 8, .order = order});
    return peak_activation_bytes(own.training.graph);
  };
  EXPECT_LT(2 * bytes(PipelineOrder::OneForwardOneBackward), bytes(PipelineOrder::GPipe));
}

TEST(Mesh, has_lines_along_its_axes) {
  const auto mesh = mesh_from_string("dp=2,pp=3");
  EXPECT_EQ(mesh.ranks(), 6);
  EXPECT_EQ(mesh.place("pp", 4), 1);
  EXPECT_EQ(mesh.place("dp", 4), 1);
  EXPECT_THAT(mesh.line("pp", 4), ElementsAre(3, 4, 5));
  EXPECT_THAT(mesh.line("dp", 4), ElementsAre(1, 4));
  EXPECT_EQ(mesh.size("tp"), 1);
  for (const char* wrong : {"dp", "dp=", "dp=0", "dp=2,dp=2", "=2", "dp=2x"})
    EXPECT_THROW(mesh_from_string(wrong), InvalidArgument) << wrong;
  EXPECT_THROW(strategy_from_string("zero1", "dp=2,pp=2"), InvalidArgument);
  EXPECT_THROW(strategy_from_string("ddp2d"), InvalidArgument);
}

TEST(Mesh, of_pipelines_has_the_bits_of_one_with_their_micro_batches_in_turn) {
  // ((0 + 1) + (2 + 3)) for two replicas of two micro-batches: those of a tree over four ranks.
  const auto tree = train_ranks("dp", 4, "shard-tree");
  const auto mesh = train_ranks("pipeline:2", 4, "rank-ordered", {.mesh = "dp=2,pp=2"});
  for (const auto& rank : mesh) {
    EXPECT_EQ(rank.losses, mesh[0].losses);
    for (std::size_t i = 0; i < rank.losses.size(); ++i)
      EXPECT_NEAR(rank.losses[i], tree[0].losses[i], 1e-6);
  }
  // Both replicas of a stage keep the same parameters.
  for (const auto& [name, state] : mesh[0].states) {
    if (name.ends_with("running_mean") || name.ends_with("running_var")) continue;
    EXPECT_TRUE(std::ranges::equal(state.bytes(), mesh[2].states.at(name).bytes())) << name;
  }
}

TEST(Mesh, of_nodes_and_devices_adds_up_as_a_tree) {
  const auto tree = train_ranks("dp", 4, "shard-tree");
  const auto nodes = train_ranks("ddp2d", 4, "rank-ordered", {.mesh = "node=2,device=2"});
  EXPECT_EQ(nodes[0].losses, tree[0].losses);
  for (const auto& rank : nodes) {
    for (const auto& [name, state] : rank.states) {
      if (name.ends_with("running_mean") || name.ends_with("running_var")) continue;
      EXPECT_TRUE(std::ranges::equal(state.bytes(), tree[0].states.at(name).bytes())) << name;
    }
  }
  EXPECT_THROW(train_ranks("ddp2d", 4, "rank-ordered", {.mesh = "node=3,device=2"}),
               InvalidArgument);
}

TEST(Pipeline, refuses_a_batch_that_does_not_divide) {
  EXPECT_THAT([] { train_ranks("pipeline:3", 2, "rank-ordered"); },
              testing::ThrowsMessage<InvalidArgument>(
                  HasSubstr("a batch of 4 cannot be shared out evenly over 3 micro-batches")));
}

}  // namespace
}  // namespace triptych::parallel
