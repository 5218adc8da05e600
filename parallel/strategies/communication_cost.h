// What a rank's graph will send, before it runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/graph/graph.h"
#include "parallel/strategies/mesh.h"

namespace triptych::parallel {

struct CommunicationCost {
  int collectives = 0;          ///< per step
  std::int64_t bytes_sent = 0;  ///< per step, by the rank that sends most
};

/// Of ranks along one axis, or in a mesh.
CommunicationCost communication_cost(const Graph& graph, int world_size, const Mesh& mesh = {});

}  // namespace triptych::parallel
