// Parts of a rank's work that count on its simulated clock.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "parallel/comm/simulated_time.h"
#include "parallel/comm/thread_group.h"
#include "parallel/strategies/rank_collectives.h"

namespace triptych::parallel {
namespace {

TEST(RankCollectives, a_simulated_clock_runs_with_the_rank_s_work_alone) {
  for (const int ranks : {2, 8}) {
    SimulatedTime time(Interconnect::switched(ranks, {1e-3, 1e6}), 0);
    run_ranks(ranks, {}, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      double worked = 100;  // before the step
      std::vector<float> data(4);
      RankCollectives collectives(communicator);
      collectives.simulate(std::make_shared<RankClock>(time, rank, [&] { return worked; }));
      collectives.computation_begins();
      worked += 1 + rank;
      collectives.computation_ends();
      collectives.run(
          "gradients",
          [&] {
            communicator.all_reduce(data, Algorithm::Ring);
            worked += 7;  // looking for messages of the others
          },
          [] {});
      collectives.computation_begins();
      worked += 0.5;
      collectives.computation_ends();
    });
    time.advance();
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& own = time.ranks()[static_cast<std::size_t>(rank)];
      EXPECT_NEAR(own.compute_s, 1 + rank + 0.5, 1e-12);
      EXPECT_NEAR(own.total_s, ranks + 0.5, 0.1) << "all wait for the slowest";
    }
  }
}

/// Notes its calls and their threads.
struct Notes : CollectiveObserver {
  void computation_ends() override { told += "ends "; }
  void computation_begins() override { told += "begins "; }
  void exchanged(const std::string& label, Instant start, Instant end) override {
    exchanges += label + " ";
    in_order = in_order && start <= end;
    exchanger = std::this_thread::get_id();
  }
  void awaited() override { told += "awaited "; }

  std::string told, exchanges;
  bool in_order = true;
  std::thread::id exchanger;
};

TEST(RankCollectives, tells_observers_what_the_rank_does) {
  run_ranks(1, {}, [](Communicator& communicator) {
    RankCollectives collectives(communicator);
    const auto notes = std::make_shared<Notes>();
    collectives.observe(notes);
    collectives.run(
        "a", [] {}, [&] { notes->told += "delivered "; });
    collectives.finish(0);  // nothing is left
    EXPECT_EQ(notes->told, "awaited delivered ");
    collectives.forget(notes);
    collectives.run(
        "b", [] {}, [] {});
    EXPECT_EQ(notes->exchanges, "a ");
    EXPECT_TRUE(notes->in_order);
    EXPECT_EQ(notes->exchanger, std::this_thread::get_id());
  });
}

TEST(RankCollectives, a_lane_exchanges_beside_the_rank_and_delivers_when_awaited) {
  run_ranks(1, {}, [](Communicator& communicator) {
    RankCollectives collectives(communicator, {}, Overlap::Lane);
    const auto notes = std::make_shared<Notes>();
    collectives.observe(notes);
    const std::string first = "a", second = "b";
    for (const auto* label : {&first, &second})
      collectives.run(
          *label, [] {}, [&notes, label] { notes->told += "delivered " + *label + " "; });
    EXPECT_EQ(notes->told, "");
    collectives.finish(1);
    EXPECT_EQ(notes->told, "ends awaited delivered a begins ");
    collectives.finish(0);
    EXPECT_EQ(notes->told, "ends awaited delivered a begins ends awaited delivered b begins ");
    EXPECT_EQ(notes->exchanges, "a b ");
    EXPECT_NE(notes->exchanger, std::this_thread::get_id());
  });
}

}  // namespace
}  // namespace triptych::parallel
