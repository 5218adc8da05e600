// A parameter server's exchange as data, similar to the schedules of parallel/collectives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/collectives/schedule.h"

namespace triptych::studies {

/// Rank 0 adds up the data of all, ((0+1)+2)+3, and sends the sum back: one schedule per rank.
std::vector<parallel::Schedule> server_schedules(int ranks, std::int64_t elements);

}  // namespace triptych::studies
