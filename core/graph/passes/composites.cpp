// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/graph/passes/passes.h"
#include "core/graph/passes/rewrite.h"

namespace triptych {

namespace {

/// Emits primitives only: a composite that an expansion emits is expanded in its turn.
class ExpandingEmitter : public OpEmitter {
 public:
  ExpandingEmitter(Graph& target, std::span<const std::string_view> keep)
      : target_(target), keep_(keep) {}

  bool expands(const Op& op) const {
    return op.composite() && std::find(keep_.begin(), keep_.end(), op.name()) == keep_.end();
  }

  std::vector<ValueId> emit(OpPtr op, Values inputs) override {
    return expands(*op) ? op->expand(*this, inputs) : target_.emit(std::move(op), inputs);
  }
  ValueId constant(Tensor value) override { return target_.constant(std::move(value)); }
  const TensorSpec& spec(ValueId value) const override { return target_.spec(value); }

 private:
  Graph& target_;
  std::span<const std::string_view> keep_;
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
