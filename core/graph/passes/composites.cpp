// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/graph/passes/passes.h"
#include "core/graph/passes/rewrite.h"

namespace triptych {

namespace {

/// Emits primitives only: a composite that an expansion emits is expanded in its turn. Nodes of
/// expansions that compute the same from the same values are one node: the gradient of attention
/// reads the probabilities that attention has computed.
class ExpandingEmitter : public OpEmitter {
 public:
  ExpandingEmitter(Graph& target, std::span<const std::string_view> keep)
      : target_(target), keep_(keep) {}

  bool expands(const Op& op) const {
    return op.composite() && std::find(keep_.begin(), keep_.end(), op.name()) == keep_.end();
  }

  std::vector<ValueId> emit(OpPtr op, Values inputs) override {
    if (expands(*op)) return op->expand(*this, inputs);
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
  std::span<const std::string_view> keep_;
  std::map<Key, std::vector<ValueId>> emitted_;  ///< outputs of the nodes without effects
  std::vector<ValueId> constants_;
};

}  // namespace

Graph expand_composites(const Graph& graph, std::span<const std::string_view> keep) {
  Rewriter rewriter(graph);
  ExpandingEmitter emitter(rewriter.target(), keep);
  for (const auto& node : graph.nodes()) {
    if (!emitter.expands(*node.op)) {
      rewriter.copy(node);
      continue;
    }
    const auto scope = rewriter.target().scope(node.name);
    const auto outputs = emitter.emit(node.op, rewriter.mapped(node.inputs));
    TRIPTYCH_ASSERT(outputs.size() == node.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      TRIPTYCH_ASSERT(emitter.spec(outputs[i]) == graph.spec(node.outputs[i]));
      rewriter.map(node.outputs[i], outputs[i]);
    }
  }
  return rewriter.finish();
}

}  // namespace triptych
