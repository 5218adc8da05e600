// SPDX-License-Identifier: Apache-2.0
#include "parallel/cluster/step_price.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/optimizers.h"
#include "parallel/strategies/communication_cost.h"
#include "parallel/strategies/rank_graph.h"

namespace triptych::parallel::step_tests {
namespace {

constexpr double kNode = 1e-3;  ///< seconds that every node computes
constexpr Link kLink = {1e-5, 1e9};

ModelConfig priced_model() {
  auto config = model_preset("unet-s");
  config.base = 2;
  config.depth = 1;
  config.size = 16;
  return config;
}

/// The graphs of all ranks of a small U-Net's training step.
std::vector<Graph> graphs_of(const std::string& strategy, int ranks, std::int64_t batch,
                             const std::string& mesh = {}) {
  std::vector<Graph> graphs;
  for (int rank = 0; rank < ranks; ++rank) {
    auto own = make_rank_graph(strategy_from_string(strategy, mesh),
                               {.step = training_step(priced_model(), {}),
                                .batch = batch,
                                .world_size = ranks,
                                .rank = rank});
    graphs.push_back(std::move(own.graph));
  }
  return graphs;
}

/// Every node computes for so long.
std::vector<RankPlan> plans_of(const std::vector<Graph>& graphs, double node_s = kNode) {
  std::vector<RankPlan> plans;
  for (const auto& graph : graphs) {
    RankPlan plan = {.graph = &graph, .steps = {}};
    std::size_t collectives = 0;
    for (const auto& node : graph.nodes()) {
      if (node.op->collective()) ++collectives;
      // Only the optimiser, at the end, needs the results of collectives.
      const bool last = op_cast<AdamUpdate>(*node.op) != nullptr;
      plan.steps.push_back({node.id, node_s, last ? collectives : 0});
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

double computed(const Graph& graph, double node_s = kNode) {
  double seconds = 0;
  for (const auto& node : graph.nodes()) seconds += node.op->collective() ? 0 : node_s;
  return seconds;
}

/// Seconds that the model gives the all-reduces of a graph, one after another.
double all_reduces(const Graph& graph, int ranks, const Interconnect& net, double add) {
  double seconds = 0;
  for (const auto& node : graph.nodes()) {
    if (!node.op->collective()) continue;
    const auto call = collective_of(graph, node);
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < ranks; ++rank) {
      schedules.push_back(
          make_schedule(call.collective, call.algorithm,
                        {.world_size = ranks, .rank = rank, .elements = call.elements}));
    }
    seconds += price(schedules, sizeof(float), net, add).seconds;
  }
  return seconds;
}

TEST(StepPrice, of_data_parallel_is_the_computation_and_then_the_all_reduces) {
  for (const int ranks : {2, 4}) {
    const auto graphs = graphs_of("dp", ranks, 4);
    const Cluster cluster = {.interconnect = Interconnect::switched(ranks, kLink),
                             .add_bytes_per_s = 1e9};
    const auto price = price_step(plans_of(graphs), cluster);
    const double expected =
        computed(graphs[0]) + all_reduces(graphs[0], ranks, cluster.interconnect, 1e9);
    // A rank may begin the next one while the last message of the one before is on its way.
    EXPECT_LE(price.seconds, expected * (1 + 1e-9));
    EXPECT_GE(price.seconds, expected - 4 * kLink.alpha_s);
    EXPECT_NEAR(price.ranks[0].compute_s, computed(graphs[0]), 1e-12);
    EXPECT_EQ(price.bytes_sent[0],
              static_cast<double>(communication_cost(graphs[0], ranks).bytes_sent));
  }
}

TEST(StepPrice, copies_to_and_from_messages_take_their_time) {
  const auto graphs = graphs_of("dp", 2, 4);
  Cluster cluster = {.interconnect = Interconnect::ring(2, kLink)};
  const auto without = price_step(plans_of(graphs), cluster);
  cluster.copy_bytes_per_s = 1e9;
  double bytes = 0;
  for (const auto& node : graphs[0].nodes()) {
    if (!node.op->collective()) continue;
    bytes += 4.0 * static_cast<double>(collective_of(graphs[0], node).elements);
  }
  // Read and written on the way in, and again on the way out.
  EXPECT_NEAR(price_step(plans_of(graphs), cluster).seconds - without.seconds, 4 * bytes / 1e9,
              1e-9);
}

TEST(StepPrice, of_a_split_by_layers_is_one_stage_after_the_other) {
  const auto graphs = graphs_of("layers", 2, 4);
  const auto price =
      price_step(plans_of(graphs), {.interconnect = Interconnect::ring(2, {0, 1e15})});
  // The first stage's optimiser may overlap the second's, and nothing else.
  double optimizers = 0;
  for (const auto& graph : graphs)
    for (const auto& node : graph.nodes())
      optimizers += op_cast<AdamUpdate>(*node.op) != nullptr ? kNode : 0;
  const double serial = computed(graphs[0]) + computed(graphs[1]);
  EXPECT_LE(price.seconds, serial);
  EXPECT_GE(price.seconds, serial - optimizers);
}

TEST(StepPrice, micro_batches_let_the_stages_work_side_by_side) {
  const auto seconds = [](const std::string& strategy, double node_s) {
    return price_step(plans_of(graphs_of(strategy, 2, 4), node_s),
                      {.interconnect = Interconnect::ring(2, kLink)})
        .seconds;
  };
  // Half and a quarter of the batch each take half and a quarter of the time.
  const double one = seconds("layers", kNode), two = seconds("pipeline:2", kNode / 2),
               four = seconds("pipeline:4", kNode / 4);
  EXPECT_LT(two, one);
  EXPECT_LT(four, two);
}

TEST(StepPrice, overlap_hides_what_the_computation_covers_and_never_costs) {
  const auto graphs = graphs_of("dp", 2, 4);
  for (const double bandwidth : {1e6, 1e8, 1e12}) {
    Cluster cluster = {.interconnect = Interconnect::ring(2, {1e-6, bandwidth})};
    const auto after = price_step(plans_of(graphs), cluster);
    cluster.overlap = true;
    const auto beside = price_step(plans_of(graphs), cluster);
    EXPECT_LE(beside.seconds, after.seconds * (1 + 1e-12)) << bandwidth;
    EXPECT_GE(beside.seconds, computed(graphs[0])) << bandwidth;
  }
}

TEST(StepPrice, collectives_of_a_mesh_run_along_their_axis) {
  const auto graphs = graphs_of("layers", 4, 4, "dp=2,pp=2");
  const Cluster cluster = {.interconnect = Interconnect::switched(4, kLink),
                           .mesh = mesh_from_string("dp=2,pp=2")};
  const auto price = price_step(plans_of(graphs), cluster);
  for (int rank = 0; rank < 4; ++rank) {
    for (const auto& collective : price.lines[static_cast<std::size_t>(rank)].collectives)
      ADD_FAILURE() << "not marked without overlap: " << collective.label;
    EXPECT_GT(price.bytes_sent[static_cast<std::size_t>(rank)], 0);
  }
  EXPECT_DOUBLE_EQ(price.ranks[0].compute_s, price.ranks[2].compute_s) << "replicas";
}

TEST(StepPrice, refuses_another_number_of_ranks_than_the_interconnects) {
  const auto graphs = graphs_of("dp", 2, 4);
  EXPECT_THROW(price_step(plans_of(graphs), {.interconnect = Interconnect::ring(3, kLink)}),
               InvalidArgument);
}

}  // namespace
}  // namespace triptych::parallel::step_tests
