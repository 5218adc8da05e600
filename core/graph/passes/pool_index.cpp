// SPDX-License-Identifier: Apache-2.0
#include "core/graph/passes/pool_index.h"

#include <array>
#include <map>
#include <set>

#include "core/graph/passes/rewrite.h"
#include "core/ops/binary.h"
#include "core/ops/pool.h"

namespace triptych {

namespace {

/// True when both slide the same windows over x.
bool same_windows(const MaxPool& pool, const MaxPoolGradient& gradient) {
  return static_cast<const PoolAttributes&>(pool) == gradient;
}

/// The first pooling that finds the maxima of `gradient`, and may store their indices, or nullptr.
const Node* pooling_of(const Graph& graph, std::span<const NodeId> readers_of_x,
                       const Node& gradient) {
  const auto& op = *op_cast<MaxPoolGradient>(*gradient.op);
  const auto& x = graph.spec(gradient.inputs[0]);
  if (x.dtype != DType::F32 || op.window(x.shape).taps() > MaxPoolWithIndex::kMostTaps) {
    return nullptr;
  }
  for (const auto id : readers_of_x) {
    const auto& node = graph.node(id);
    const auto* pool = op_cast<MaxPool>(*node.op);
    const bool is_earlier = id.index() < gradient.id.index();
    if (pool != nullptr && is_earlier && same_windows(*pool, op)) return &node;
  }
  return nullptr;
}

/// An operator with the windows of `pool`.
template <class Op>
Op with_windows(const MaxPool& pool) {
  Op op;
  static_cast<PoolAttributes&>(op) = pool;
  return op;
}

}  // namespace

Graph index_max_pools(const Graph& graph, const std::function<bool(const Node&)>& joins) {
  Rewriter rewriter(graph);
  const auto consumers = graph.consumers();
  std::map<NodeId, const Node*> pool_of;  // by gradient
  std::set<NodeId> indexed;
  for (const auto& node : graph.nodes()) {
    if (op_cast<MaxPoolGradient>(*node.op) == nullptr || !joins(node)) continue;
    const auto* pool = pooling_of(graph, consumers[node.inputs[0].index()], node);
    if (pool == nullptr || !joins(*pool)) continue;
    pool_of[node.id] = pool;
    indexed.insert(pool->id);
  }
  std::map<NodeId, ValueId> index_of;  // by pooling, in the new graph
  for (const auto& node : graph.nodes()) {
    if (const auto found = pool_of.find(node.id); found != pool_of.end()) {
      auto op = with_windows<MaxPoolIndexGradient>(*op_cast<MaxPool>(*found->second->op));
      op.input_shape = graph.spec(node.inputs[0]).shape.dims();
      const std::vector<ValueId> inputs = {index_of.at(found->second->id),
                                           rewriter.mapped(node.inputs[1])};
      rewriter.map(node.outputs[0], rewriter.append(node, make_op(std::move(op)), inputs).front());
    } else if (indexed.contains(node.id)) {
      const auto outputs = rewriter.append(
          node, make_op(with_windows<MaxPoolWithIndex>(*op_cast<MaxPool>(*node.op))),
          rewriter.mapped(node.inputs));
      rewriter.map(node.outputs[0], outputs[0]);
      index_of[node.id] = outputs[1];
    } else {
      rewriter.copy(node);
    }
  }
  return rewriter.finish();
}

namespace {

bool is_sum(const Node& node) {
  const auto* op = op_cast<Binary>(*node.op);
  return op != nullptr && op->kind == BinaryKind::Add;
}

/// True for a gradient of a pooling with nothing to add.
bool is_plain_gradient(const Node& node) {
  return op_cast<MaxPoolIndexGradient>(*node.op) != nullptr && node.inputs.size() == 2;
}

}  // namespace

Graph add_in_pool_gradients(const Graph& graph, const std::function<bool(const Node&)>& joins) {
  Rewriter rewriter(graph);
  std::map<NodeId, const Node*> gradient_of;  // by sum
  std::set<NodeId> added;
  for (const auto& node : graph.nodes()) {
    if (!is_plain_gradient(node) || !joins(node)) continue;
    const auto dx = node.outputs[0];
    const auto* sum = rewriter.only_reader(dx);
    if (sum == nullptr || !is_sum(*sum) || !joins(*sum) || gradient_of.contains(sum->id)) continue;
    const auto other = sum->inputs[sum->inputs[0] == dx ? 1 : 0];
    if (other == dx || graph.spec(other) != graph.spec(dx)) continue;
    gradient_of[sum->id] = &node;
    added.insert(node.id);
  }
  for (const auto& node : graph.nodes()) {
    if (added.contains(node.id)) continue;
    const auto found = gradient_of.find(node.id);
    if (found == gradient_of.end()) {
      rewriter.copy(node);
      continue;
    }
    const auto& gradient = *found->second;
    auto inputs = rewriter.mapped(gradient.inputs);
    inputs.push_back(rewriter.mapped(node.inputs[node.inputs[0] == gradient.outputs[0] ? 1 : 0]));
    rewriter.map(node.outputs[0],
                 rewriter.append_merged(std::array{&gradient, &node}, gradient, gradient.op, inputs)
                     .front());
  }
  return rewriter.finish();
}

}  // namespace triptych
