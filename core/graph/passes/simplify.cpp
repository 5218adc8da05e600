// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "core/graph/passes/passes.h"
#include "core/graph/passes/rewrite.h"
#include "core/graph/reference.h"
#include "core/ops/reshape.h"

namespace triptych {

namespace {

/// A folded value larger than this must not be much larger than its operands: an expansion costs
/// less as a node than as a constant.
constexpr std::size_t kFreeBytes = std::size_t{1} << 20;
constexpr std::size_t kLargestGrowth = 4;

/// The reference's plain loops take about a second for this much work.
constexpr double kLargestFlops = 1e8;

std::size_t bytes_of(Specs specs) {
  std::size_t bytes = 0;
  for (const auto& spec : specs) bytes += spec.bytes();
  return bytes;
}

bool worth_folding(const Graph& graph, const Node& node, Values inputs) {
  const auto is_constant = [&](ValueId id) { return graph.value(id).kind == ValueKind::Constant; };
  if (inputs.empty() || !std::all_of(inputs.begin(), inputs.end(), is_constant)) return false;
  if (!node.updates().empty() || node.op->collective()) return false;
  const auto before = graph.specs(inputs);
  const auto after = node.op->infer(before);
  const auto bytes = bytes_of(after);
  return (bytes <= kFreeBytes || bytes / kLargestGrowth <= bytes_of(before)) &&
         node.op->cost(before, after).flops <= kLargestFlops;
}

/// Per node: an output of the graph or an update depends on it.
std::vector<bool> needed_nodes(const Graph& graph) {
  std::vector<bool> value_needed(graph.values().size(), false);
  for (const auto& output : graph.outputs()) value_needed[output.value.index()] = true;
  std::vector<bool> needed(graph.nodes().size(), false);
  for (auto i = graph.nodes().size(); i-- > 0;) {
    const auto& node = graph.nodes()[i];
    needed[i] = !node.updates().empty() || node.op->collective() ||  // others count on it
                std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](ValueId id) { return value_needed[id.index()]; });
    if (!needed[i]) continue;
    for (const auto input : node.inputs) value_needed[input.index()] = true;
  }
  return needed;
}

/// An Identity of a state or an input stays, because an output may not name its operand.
bool bypassed(const Graph& graph, const Node& node) {
  return op_cast<Identity>(*node.op) != nullptr &&
         graph.value(node.inputs.front()).kind == ValueKind::Activation;
}

}  // namespace

Graph fold_constants(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const auto& node : graph.nodes()) {
    const auto inputs = rewriter.mapped(node.inputs);
    if (!worth_folding(rewriter.target(), node, inputs)) {
      rewriter.copy(node);
      continue;
    }
    if (op_cast<Identity>(*node.op) != nullptr) {
      rewriter.map_to_constant(node.outputs.front(), rewriter.target().value(inputs.front()).data);
      continue;
    }
    std::vector<RefTensor> values;
    values.reserve(inputs.size());
    for (const auto id : inputs) values.push_back(to_reference(*rewriter.target().value(id).data));
    const auto results = evaluate_reference(*node.op, values);
    for (std::size_t i = 0; i < results.size(); ++i) {
      rewriter.map_to_constant(node.outputs[i],
                               std::make_shared<const Tensor>(from_reference(results[i])));
    }
  }
  return rewriter.finish();
}

Graph eliminate_dead_code(const Graph& graph) {
  Rewriter rewriter(graph);
  const auto needed = needed_nodes(graph);
  for (const auto& node : graph.nodes()) {
    if (!needed[node.id.index()]) continue;
    if (bypassed(graph, node)) {
      rewriter.map(node.outputs.front(), rewriter.mapped(node.inputs.front()));
    } else {
      rewriter.copy(node);
    }
  }
  return rewriter.finish();
}

Graph freeze_states(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (const auto& update : node.updates()) {
      throw_invalid("freeze_states",
                    fmt::format("\"{}\" is updated by node \"{}\"; build the graph for inference",
                                graph.value(update.before).name, node.name));
    }
  }
  Rewriter rewriter(graph, ValueKind::Constant);
  for (const auto& node : graph.nodes()) rewriter.copy(node);
  return rewriter.finish();
}

}  // namespace triptych
