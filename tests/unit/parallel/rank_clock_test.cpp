// Parts of a rank's work that count on its simulated clock.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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
      RankCollectives collectives({{"dp", &communicator}});
      collectives.simulate(time, rank, [&] { return worked; });
      collectives.skip();
      worked += 1 + rank;
      collectives.count_computation();
      collectives.run(
          "gradients",
          [&] {
            communicator.all_reduce(data, Algorithm::Ring);
            worked += 7;  // looking for messages of the others
          },
          [] {});
      collectives.skip();
      worked += 0.5;
      collectives.count_computation();
    });
    time.advance();
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& own = time.ranks()[static_cast<std::size_t>(rank)];
      EXPECT_NEAR(own.compute_s, 1 + rank + 0.5, 1e-12);
      EXPECT_NEAR(own.total_s, ranks + 0.5, 0.1) << "all wait for the slowest";
    }
  }
}

}  // namespace
}  // namespace triptych::parallel
