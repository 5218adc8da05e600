// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/graph/passes/passes.h"
#include "core/graph/passes/rewrite.h"

namespace triptych {

namespace {

/// Emits the nodes of expansions, and expands composites among them in their turn if `expands`
/// holds. Nodes that compute the same from the same values are one node: the gradient of attention
/// reads the probabilities that attention has computed.
class ExpandingEmitter : public OpEmitter {
 public:
  ExpandingEmitter(Graph& target, const std::function<bool(const Op&)>& expands)
      : target_(target), expands_(expands) {}

  std::vector<ValueId> emit(OpPtr op, Values inputs) override {
    if (expands_(*op)) return op->expand(*this, inputs);
    const bool has_effect =
        op->collective() || !op->updates(static_cast<int>(inputs.size())).empty();
    if (has_effect) return target_.emit(std::move(op), inputs);
    auto& outputs = emitted_[{to_string(*op), {inputs.begin(), inputs.end()}}];
    if (outputs.empty()) outputs = target_.emit(std::move(op), inputs);
    return outputs;
  }

  ValueId constant(Tensor value) override {
    for (const auto id : constants_) {
      const auto& other = *target_.value(id).data;
      if (other.spec() == value.spec() && std::ranges::equal(other.bytes(), value.bytes())) {
        return id;
      }
    }
    constants_.push_back(target_.constant(std::move(value)));
    return constants_.back();
  }

  const TensorSpec& spec(ValueId value) const override { return target_.spec(value); }

 private:
  using Key = std::pair<std::string, std::vector<ValueId>>;

  Graph& target_;
  const std::function<bool(const Op&)>& expands_;
  std::map<Key, std::vector<ValueId>> emitted_;  ///< outputs of the nodes without effects
  std::vector<ValueId> constants_;
};

/// `inner`: composites of expansions that are expanded.
Graph expand(const Graph& graph, const std::function<bool(const Node&)>& chosen,
             const std::function<bool(const Op&)>& inner) {
  Rewriter rewriter(graph);
  ExpandingEmitter emitter(rewriter.target(), inner);
  for (const auto& node : graph.nodes()) {
    if (!chosen(node)) {
      rewriter.copy(node);
      continue;
    }
    const auto scope = rewriter.target().scope(node.name);
    const auto phase = rewriter.phase_of(node);
    const auto outputs = node.op->expand(emitter, rewriter.mapped(node.inputs));
    TRIPTYCH_ASSERT(outputs.size() == node.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      TRIPTYCH_ASSERT(emitter.spec(outputs[i]) == graph.spec(node.outputs[i]));
      rewriter.map(node.outputs[i], outputs[i]);
    }
  }
  return rewriter.finish();
}

}  // namespace

Graph expand_composites(const Graph& graph, std::span<const std::string_view> keep) {
  const auto expands = [keep](const Op& op) {
    return op.composite() && std::ranges::find(keep, op.name()) == keep.end();
  };
  return expand(
      graph, [&](const Node& node) { return expands(*node.op); }, expands);
}

Graph expand_nodes(const Graph& graph, const std::set<NodeId>& nodes) {
  return expand(
      graph, [&](const Node& node) { return nodes.contains(node.id); },
      [](const Op&) { return false; });
}

}  // namespace triptych
