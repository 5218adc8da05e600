// The schedules of a parameter server.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/server_schedule.h"

#include <gtest/gtest.h>

#include "parallel/collectives/symbolic.h"

namespace triptych::studies {
namespace {

TEST(ServerSchedule, gives_every_rank_the_sum_in_the_order_of_the_ranks) {
  const auto schedules = server_schedules(4, 3);
  parallel::Terms terms;
  for (const auto& rank : parallel::run_symbolically(schedules, 3, terms)) {
    for (const auto term : rank) EXPECT_EQ(terms.text(term), "(((0+1)+2)+3)");
  }
}

}  // namespace
}  // namespace triptych::studies
