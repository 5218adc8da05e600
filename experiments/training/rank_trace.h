// Events of one rank in a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/trace.h"
#include "parallel/comm/simulated_time.h"

namespace triptych::training {

struct RankTrace {
  TracedRun run;  ///< its profile without the collectives, which are a lane
  Duration time;
  Duration exposed;  ///< of it without computation
  /// By step of the profile: the number of its computation on the simulated clock.
  std::vector<std::size_t> computations;
};

/// Replaces the times by those that the simulated clocks, which have advanced, give the rank.
void place_on_clock(const parallel::SimulatedTime& time, int rank, RankTrace& trace);

}  // namespace triptych::training
