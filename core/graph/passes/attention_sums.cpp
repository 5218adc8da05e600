// SPDX-License-Identifier: Apache-2.0
#include "core/graph/passes/attention_sums.h"

#include <map>
#include <set>

#include "core/graph/passes/passes.h"
#include "core/graph/passes/rewrite.h"
#include "core/ops/attention_gradient.h"

namespace triptych {

namespace {

/// The nodes of Attention by their gradients.
using AttentionOf = std::map<NodeId, NodeId>;

/// The attention that `gradient` belongs to, or an invalid id.
NodeId attention_of(const Graph& graph, const Node& gradient) {
  const auto& op = *op_cast<AttentionGradient>(*gradient.op);
  const auto producer = graph.value(gradient.inputs[3]).producer;
  if (!producer.valid()) return {};
  const auto& node = graph.node(producer);
  const auto* attention = op_cast<Attention>(*node.op);
  const bool belongs = attention != nullptr &&
                       static_cast<const AttentionAttributes&>(*attention) == op &&
                       std::equal(node.inputs.begin(), node.inputs.end(), gradient.inputs.begin());
  return belongs ? producer : NodeId{};
}

/// The pairs of a graph whose gradients have no sums yet.
AttentionOf pairs_of(const Graph& graph) {
  AttentionOf pairs;
  for (const auto& node : graph.nodes()) {
    if (op_cast<AttentionGradient>(*node.op) == nullptr ||
        node.inputs.size() > AttentionGradient::kSums) {
      continue;
    }
    const auto attention = attention_of(graph, node);
    if (attention.valid()) pairs[node.id] = attention;
  }
  return pairs;
}

/// True where the scores of a query take no more memory than q or y, so that products read them
/// from the nearest caches. A kernel without scores computes one product more.
bool has_few_keys(const Graph& graph, NodeId attention) {
  const auto& node = graph.node(attention);
  const auto specs = graph.specs(Values(node.inputs).first(3));
  return AttentionGeometry::of(*op_cast<Attention>(*node.op), specs).keys <= kFewKeys;
}

/// The same graph with sums for these pairs.
Graph with_sums(const Graph& graph, const AttentionOf& pairs) {
  Rewriter rewriter(graph);
  std::set<NodeId> attentions;
  for (const auto& [gradient, attention] : pairs) attentions.insert(attention);
  std::map<NodeId, ValueId> sums;  // by attention, in the new graph
  for (const auto& node : graph.nodes()) {
    auto inputs = rewriter.mapped(node.inputs);
    if (attentions.contains(node.id)) {
      AttentionWithSums op;
      static_cast<AttentionAttributes&>(op) = *op_cast<Attention>(*node.op);
      const auto outputs = rewriter.append(node, make_op(op), inputs);
      rewriter.map(node.outputs[0], outputs[0]);
      sums[node.id] = outputs[1];
    } else if (const auto found = pairs.find(node.id); found != pairs.end()) {
      inputs.push_back(sums.at(found->second));
      const auto outputs = rewriter.append(node, node.op, inputs);
      for (std::size_t i = 0; i < outputs.size(); ++i) rewriter.map(node.outputs[i], outputs[i]);
    } else {
      rewriter.copy(node);
    }
  }
  return rewriter.finish();
}

}  // namespace

Graph save_attention_sums(const Graph& graph,
                          const std::function<bool(const Graph&, const Node&)>& joins) {
  auto pairs = pairs_of(graph);
  const auto whole = with_sums(graph, pairs);  // node by node the same numbers
  std::set<NodeId> refused;
  for (const auto& [gradient, attention] : pairs) {
    if (!joins(whole, whole.node(gradient)) || !joins(whole, whole.node(attention))) {
      refused.insert(attention);
    }
  }
  std::erase_if(pairs, [&](const auto& pair) { return refused.contains(pair.second); });
  std::set<NodeId> expanded;
  for (const auto& [gradient, attention] : pairs)
    if (has_few_keys(graph, attention)) expanded.insert({gradient, attention});
  if (expanded.empty()) return refused.empty() ? whole.clone() : with_sums(graph, pairs);
  std::erase_if(pairs, [&](const auto& pair) { return expanded.contains(pair.first); });
  return expand_nodes(with_sums(graph, pairs), expanded);  // node by node the same numbers
}

}  // namespace triptych
