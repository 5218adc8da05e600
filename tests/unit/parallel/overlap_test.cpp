// Collectives beside the computation: the same bits, and clocks that run beside one another.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "parallel/comm/communication_lane.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

TEST(CommunicationLane, runs_in_order_beside_its_user) {
  CommunicationLane lane;
  std::atomic<bool> open = false;
  std::vector<int> order;
  lane.start([&] {
    while (!open) std::this_thread::yield();
    order.push_back(1);
  });
  lane.start([&] { order.push_back(2); });
  lane.wait(0);
  open = true;
  lane.wait(2);
  EXPECT_THAT(order, testing::ElementsAre(1, 2));
}

TEST(CommunicationLane, stops_at_an_exception) {
  CommunicationLane lane;
  bool ran = false;
  lane.start([] {});
  lane.start([] { throw NumericError("no number"); });
  lane.start([&] { ran = true; });
  lane.wait(1);
  EXPECT_THROW(lane.wait(2), NumericError);
  EXPECT_THROW(lane.wait(3), NumericError);
  EXPECT_FALSE(ran);
}

struct OverlapCase {
  std::string strategy;
  int ranks;
  std::string_view mesh;
  std::int64_t batch = kBatch;
};

class Strategies : public testing::TestWithParam<OverlapCase> {};

TEST_P(Strategies, have_the_same_bits_with_overlap) {
  const auto& [strategy, ranks, mesh, batch] = GetParam();
  std::vector<std::string> nodes;
  const auto training = build_training_graph(small_model(), {.batch = batch, .seed = 3});
  for (const auto& node : training.graph.nodes()) nodes.push_back(node.name);
  const bool cut = strategy == "layers" || strategy.starts_with("pipeline");
  for (unsigned seed = 0; seed < (cut ? 12 : 1); ++seed) {
    std::mt19937 random(seed);
    RunOptions run = {.mesh = mesh, .batch = batch};
    for (const auto& name : nodes) run.node_seconds[name] = static_cast<double>(random() % 1000);
    const auto alone = train_ranks(strategy, ranks, "rank-ordered", run);
    run.overlap = Overlap::Lane;
    const auto beside = train_ranks(strategy, ranks, "rank-ordered", run);
    for (std::size_t rank = 0; rank < alone.size(); ++rank) {
      EXPECT_EQ(beside[rank].losses, alone[rank].losses) << "seed " << seed;
      for (const auto& [name, state] : alone[rank].states)
        EXPECT_THAT(beside[rank].states.at(name).as<float>(),
                    testing::ElementsAreArray(state.as<float>()))
            << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Overlap, Strategies,
    testing::Values(OverlapCase{"dp", 2, ""}, OverlapCase{"dp", 4, ""}, OverlapCase{"zero1", 2, ""},
                    OverlapCase{"zero2", 4, ""}, OverlapCase{"zero3", 2, ""},
                    OverlapCase{"pipeline:2", 2, ""}, OverlapCase{"pipeline:4,gpipe", 3, ""},
                    OverlapCase{"pipeline:2", 4, "dp=2,pp=2"}, OverlapCase{"tp", 2, ""},
                    OverlapCase{"ps-sync", 4, ""}, OverlapCase{"central", 3, ""},
                    OverlapCase{"ddp2d", 4, "node=2,device=2"}));

// Concatenations of one image are written in place, and no kernel of theirs waits.
INSTANTIATE_TEST_SUITE_P(
    OverlapOfOneImage, Strategies,
    testing::Values(OverlapCase{"tp", 2, "", 1}, OverlapCase{"layers", 3, "", 1},
                    OverlapCase{"pipeline:4", 2, "", 4}, OverlapCase{"dp", 4, "", 4},
                    OverlapCase{"tp", 4, "dp=2,tp=2", 2}, OverlapCase{"zero3", 2, "", 2}));

}  // namespace
}  // namespace triptych::parallel
