// Messages that a rank's graph will send, counted before it runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/graph/graph.h"
#include "parallel/collectives/algorithms.h"
#include "parallel/strategies/mesh.h"

namespace triptych::parallel {

struct CommunicationCost {
  int collectives = 0;          ///< per step
  std::int64_t bytes_sent = 0;  ///< per step, by the rank that sends most
};

/// A collective node as a call: its data and its partners.
struct NodeCollective {
  std::string axis;
  Collective collective = Collective::AllReduce;
  Algorithm algorithm = Algorithm::Direct;  ///< for the transport's library, a ring: the least
  std::int64_t elements = 0;                ///< of the message, f32
  int peer = -1;                            ///< of Send and Receive, by rank of the axis
  bool sends = false;                       ///< Send
};

/// The collective of a node that has one as operator.
NodeCollective collective_of(const Graph& graph, const Node& node);

/// Bytes that the rank sends that sends most, for a message of so many f32 elements.
std::int64_t bytes_sent(Collective collective, Algorithm algorithm, int world_size,
                        std::int64_t elements);

/// Cost for ranks along one axis, or in a mesh.
CommunicationCost communication_cost(const Graph& graph, int world_size, const Mesh& mesh = {});

}  // namespace triptych::parallel
