// The kernels of collective nodes, which a RankCollectives runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/collectives.h"
#include "core/runtime/kernel.h"
#include "parallel/comm/communicator.h"

namespace triptych::parallel {

/// The algorithm that adds in that order.
Algorithm algorithm_of(ReductionOrder order);

/// Their query's `collectives` is a RankCollectives.
KernelTable collective_kernels();

}  // namespace triptych::parallel
