// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/communication_cost.h"

#include <algorithm>

#include "core/ops/all_reduce.h"
#include "parallel/strategies/rank_collectives.h"

namespace triptych::parallel {
namespace {

std::int64_t elements_sent(const Schedule& schedule) {
  std::int64_t elements = 0;
  for (const auto& step : schedule.steps)
    if (step.kind == Step::Kind::Send) elements += step.place.range.elements();
  return elements;
}

}  // namespace

CommunicationCost communication_cost(const Graph& graph, int world_size) {
  CommunicationCost cost;
  for (const auto& node : graph.nodes()) {
    const auto* all_reduce = op_cast<AllReduce>(*node.op);
    if (all_reduce == nullptr) continue;
    CollectiveShape shape = {.world_size = world_size};
    for (const auto input : node.inputs) shape.elements += graph.spec(input).shape.elements();
    std::int64_t most = 0;
    for (shape.rank = 0; shape.rank < world_size; ++shape.rank) {
      most =
          std::max(most, elements_sent(make_schedule(
                             Collective::AllReduce, algorithm_of_order(all_reduce->order), shape)));
    }
    ++cost.collectives;
    cost.bytes_sent += most * static_cast<std::int64_t>(sizeof(float));
  }
  return cost;
}

}  // namespace triptych::parallel
