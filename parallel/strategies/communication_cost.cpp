// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/communication_cost.h"

#include <algorithm>

#include "core/ops/collectives.h"
#include "parallel/strategies/collective_kernels.h"

namespace triptych::parallel {
namespace {

constexpr std::int64_t kElementBytes = sizeof(float);

std::int64_t elements_sent(const Schedule& schedule) {
  std::int64_t elements = 0;
  for (const auto& step : schedule.steps)
    if (step.kind == ScheduleStep::Kind::Send) elements += step.place.range.size();
  return elements;
}

/// As many bytes, in elements of f32.
std::int64_t elements_of(const Graph& graph, Values values) {
  std::int64_t bytes = 0;
  for (const auto value : values) bytes += static_cast<std::int64_t>(graph.spec(value).bytes());
  return (bytes + kElementBytes - 1) / kElementBytes;
}

/// Nobody knows how the transport's library adds. A ring sends the least there is.
Algorithm known_algorithm(ReductionOrder order) {
  const auto own = algorithm_of(order);
  return own == Algorithm::Library ? Algorithm::Ring : own;
}

std::int64_t sent_by_node(const Graph& graph, const Node& node, int world_size, const Mesh& mesh) {
  const auto call = collective_of(graph, node);
  if (call.peer >= 0) return call.sends ? call.elements * kElementBytes : 0;
  const int ranks = mesh.empty() ? world_size : mesh.size(call.axis);
  return bytes_sent(call.collective, call.algorithm, ranks, call.elements);
}

}  // namespace

std::int64_t bytes_sent(Collective collective, Algorithm algorithm, int world_size,
                        std::int64_t elements) {
  std::int64_t most = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    most = std::max(most, elements_sent(make_schedule(
                              collective, algorithm,
                              {.world_size = world_size, .rank = rank, .elements = elements})));
  }
  return most * kElementBytes;
}

NodeCollective collective_of(const Graph& graph, const Node& node) {
  if (const auto* op = op_cast<AllReduce>(*node.op)) {
    return {op->axis, Collective::AllReduce, known_algorithm(op->order),
            elements_of(graph, node.inputs)};
  }
  if (const auto* op = op_cast<ReduceScatter>(*node.op)) {
    return {op->axis, Collective::ReduceScatter, known_algorithm(op->order),
            op->parts * elements_of(graph, node.outputs)};
  }
  if (const auto* op = op_cast<AllGather>(*node.op)) {
    return {op->axis, Collective::AllGather, Algorithm::Direct,
            op->parts * elements_of(graph, node.inputs)};
  }
  NodeCollective call;
  if (const auto* op = op_cast<Send>(*node.op)) {
    call.axis = op->axis;
    call.peer = static_cast<int>(op->to);
    call.sends = true;
    call.elements = elements_of(graph, node.inputs);
    return call;
  }
  const auto& op = dynamic_cast<const Receive&>(*node.op);
  call.axis = op.axis;
  call.peer = static_cast<int>(op.from);
  call.elements = elements_of(graph, node.outputs);
  return call;
}

CommunicationCost communication_cost(const Graph& graph, int world_size, const Mesh& mesh) {
  CommunicationCost cost;
  for (const auto& node : graph.nodes()) {
    if (!node.op->collective()) continue;
    ++cost.collectives;
    cost.bytes_sent += sent_by_node(graph, node, world_size, mesh);
  }
  return cost;
}

}  // namespace triptych::parallel
