// The schedule of a ring of four ranks.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "parallel/collectives/algorithms.h"
#include "parallel/strategies/strategy.h"

int main() {
  using namespace triptych::parallel;
  const auto schedule =
      make_schedule(Collective::AllReduce, Algorithm::Ring, {.world_size = 4, .elements = 1024});
  std::printf("%zu steps\n", schedule.steps.size());
  return schedule.steps.empty() ? 1 : 0;
}
