// Collectives that overlap the computation: the same bits, and concurrent clocks.
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

struct Case {
  std::string strategy;
  int ranks;
  std::string_view mesh;
  std::int64_t batch = kBatch;
};

class Strategies : public testing::TestWithParam<Case> {};

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

INSTANTIATE_TEST_SUITE_P(Overlap, Strategies,
                         testing::Values(Case{"dp", 2, ""}, Case{"dp", 4, ""}, Case{"zero1", 2, ""},
                                         Case{"zero2", 4, ""}, Case{"zero3", 2, ""},
                                         Case{"pipeline:2", 2, ""}, Case{"pipeline:4,gpipe", 3, ""},
                                         Case{"pipeline:2", 4, "dp=2,pp=2"}, Case{"tp", 2, ""},
                                         Case{"ps-sync", 4, ""}, Case{"central", 3, ""},
                                         Case{"ddp2d", 4, "node=2,device=2"}));

// Concatenations of one image are written in place, and no kernel of theirs waits.
INSTANTIATE_TEST_SUITE_P(OverlapOfOneImage, Strategies,
                         testing::Values(Case{"tp", 2, "", 1}, Case{"layers", 3, "", 1},
                                         Case{"pipeline:4", 2, "", 4}, Case{"dp", 4, "", 4},
                                         Case{"tp", 4, "dp=2,tp=2", 2}, Case{"zero3", 2, "", 2}));

class Messages : public testing::TestWithParam<std::tuple<std::string, Overlap>> {};

TEST_P(Messages, of_many_micro_batches_take_turns_in_the_memory_of_few) {
  const auto& [order, overlap] = GetParam();
  const auto train = [&](std::int64_t micro_batches, Overlap run) {
    return train_ranks("pipeline:" + std::to_string(micro_batches) + order, 3, "rank-ordered",
                       {.overlap = run, .batch = micro_batches});
  };
  const auto few = train(4, overlap), many = train(24, overlap), alone = train(24, Overlap::None);
  for (std::size_t rank = 0; rank < few.size(); ++rank) {
    EXPECT_GT(few[rank].message_bytes, 0U);
    EXPECT_EQ(many[rank].message_bytes, few[rank].message_bytes) << "rank " << rank;
    EXPECT_EQ(many[rank].losses, alone[rank].losses);
  }
}

INSTANTIATE_TEST_SUITE_P(Overlap, Messages,
                         testing::Combine(testing::Values("", ",gpipe"),
                                          testing::Values(Overlap::None, Overlap::Lane)));

}  // namespace
}  // namespace triptych::parallel
