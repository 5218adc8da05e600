// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "core/graph/passes/lifetimes.h"
#include "core/graph/passes/passes.h"
#include "core/graph/passes/rewrite.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"

namespace triptych {

namespace {

/// The node as an operator without activation, or nullptr.
template <class Norm>
const Norm* plain(const Node* node) {
  const auto* norm = node == nullptr ? nullptr : op_cast<Norm>(*node->op);
  return norm != nullptr && norm->activation.empty() ? norm : nullptr;
}

bool is_relu_gradient(const Node& node) {
  const auto* binary = op_cast<Binary>(*node.op);
  return binary != nullptr && binary->kind == BinaryKind::ReluGradient;
}

/// The only reader of output 0 of `first`, not far from it, or nullptr.
const Node* near_reader(const Rewriter& rewriter, const Node& first) {
  const Node* reader = rewriter.only_reader(first.outputs[0]);
  const bool near = reader != nullptr && reader->id.index() - first.id.index() <= kMostNodesApart;
  return near ? reader : nullptr;
}

/// Appends the normalisation with the activation of the Relu, if it is one that joins.
bool append_forward(Rewriter& rewriter, const Node& node,
                    const std::function<bool(const Node&)>& joins) {
  const auto* norm = plain<BatchNormalization>(&node);
  const Node* relu = norm == nullptr ? nullptr : near_reader(rewriter, node);
  if (relu == nullptr || !is_relu(*relu) || !joins(node) || !joins(*relu)) return false;
  auto fused = *norm;
  fused.activation = "relu";
  const auto outputs = rewriter.append_merged(
      std::array{&node, relu}, node, make_op(std::move(fused)), rewriter.mapped(node.inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) rewriter.map(node.outputs[i], outputs[i]);
  rewriter.map(relu->outputs[0], outputs[0]);
  return true;
}

/// The two gradients of a Relu and of the normalisation before it.
struct Gradients {
  const Node* relu = nullptr;
  const Node* norm = nullptr;
  ValueId bias;  ///< of the normalisation
};

/// The node that computes `value`, or nullptr for an input, a state or a constant.
const Node* producer_of(const Graph& graph, ValueId value) {
  const auto& info = graph.value(value);
  return info.kind == ValueKind::Activation ? &graph.node(info.producer) : nullptr;
}

/// The normalisation in training mode that computes the operand of the Relu with the output `y`, or
/// nullptr.
const Node* normalization_of(const Graph& graph, ValueId y) {
  const Node* relu = producer_of(graph, y);
  if (relu == nullptr || !is_relu(*relu)) return nullptr;
  const auto before = relu->inputs[0];
  const Node* norm = producer_of(graph, before);
  const auto* op = plain<BatchNormalization>(norm);
  const bool fits = op != nullptr && op->training_mode && norm->outputs[0] == before;
  return fits ? norm : nullptr;
}

/// When states are updated in place.
class Overwrites {
 public:
  explicit Overwrites(const Graph& graph) : roots_(Lifetimes::of(graph).root) {
    for (const auto& node : graph.nodes()) {
      for (const auto& update : node.updates()) by_[root(update.before)].push_back(node.id);
    }
  }

  /// True when `value` no longer has the content at `last` that `first` could read.
  bool between(ValueId value, const Node& first, const Node& last) const {
    const auto found = by_.find(root(value));
    return found != by_.end() && std::ranges::any_of(found->second, [&](NodeId by) {
             return by.index() >= first.id.index() && by.index() <= last.id.index();
           });
  }

 private:
  ValueId root(ValueId value) const { return roots_[value.index()]; }

  std::vector<ValueId> roots_;
  std::map<ValueId, std::vector<NodeId>> by_;  ///< by root: the nodes that update it
};

/// The gradients that begin with `relu`, when the second alone reads the first, both belong to one
/// pair of nodes, and the operands of the fused node still exist at its later position.
std::optional<Gradients> gradients_from(const Rewriter& rewriter, const Overwrites& overwrites,
                                        const Node& relu) {
  if (!is_relu_gradient(relu)) return std::nullopt;
  const Node* norm = near_reader(rewriter, relu);
  if (plain<BatchNormalizationGradient>(norm) == nullptr) return std::nullopt;
  const auto& graph = rewriter.source();
  const Node* forward = normalization_of(graph, relu.inputs[1]);
  if (forward == nullptr || graph.spec(relu.inputs[0]) != graph.spec(relu.inputs[1])) {
    return std::nullopt;
  }
  const std::vector<ValueId> of_forward = {forward->inputs[0], relu.outputs[0], forward->inputs[1],
                                           forward->outputs[3], forward->outputs[4]};
  if (norm->inputs != of_forward) return std::nullopt;
  const auto bias = forward->inputs[2];
  if (overwrites.between(bias, *forward, *norm)) return std::nullopt;
  if (overwrites.between(relu.inputs[0], relu, *norm)) return std::nullopt;
  return Gradients{&relu, norm, bias};
}

void append_backward(Rewriter& rewriter, const Gradients& gradients) {
  auto inputs = gradients.norm->inputs;
  inputs[1] = gradients.relu->inputs[0];
  inputs.push_back(gradients.bias);
  BatchNormalizationGradient fused;
  fused.activation = "relu";
  const auto outputs =
      rewriter.append_merged(std::array{gradients.relu, gradients.norm}, *gradients.norm,
                             make_op(std::move(fused)), rewriter.mapped(inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    rewriter.map(gradients.norm->outputs[i], outputs[i]);
  }
}

}  // namespace

Graph fuse_normalization(const Graph& graph, const std::function<bool(const Node&)>& joins) {
  Rewriter rewriter(graph);
  const Overwrites overwrites(graph);
  std::map<NodeId, Gradients> waiting;  // by the second of the two
  for (const auto& node : graph.nodes()) {
    if (const auto found = waiting.find(node.id); found != waiting.end()) {
      append_backward(rewriter, found->second);
    } else if (const auto gradients = gradients_from(rewriter, overwrites, node);
               gradients && joins(node) && joins(*gradients->norm)) {
      waiting[gradients->norm->id] = *gradients;
    } else if (!append_forward(rewriter, node, joins)) {
      rewriter.copy(node);
    }
  }
  return rewriter.finish();
}

}  // namespace triptych
