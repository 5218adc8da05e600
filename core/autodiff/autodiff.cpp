// SPDX-License-Identifier: Apache-2.0
#include "core/autodiff/autodiff.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "core/ops/attention.h"
#include "core/ops/binary.h"

namespace triptych {
namespace {

/// Per value: it depends, through floating-point values, on one of `wanted`.
std::vector<bool> dependents(const Graph& graph, Values wanted) {
  std::vector<bool> depends(graph.values().size(), false);
  for (const auto value : wanted) depends[value.index()] = true;
  for (const auto& node : graph.nodes()) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId input) { return depends[input.index()]; });
    for (const auto output : node.outputs) {
      depends[output.index()] =
          depends[output.index()] || (any && is_floating(graph.spec(output).dtype));
    }
  }
  return depends;
}

/// True of a composite with a gradient rule of its own.
bool has_own_gradient(const Op& op) { return op_cast<Attention>(op) != nullptr; }

/// Expands every composite node that a gradient may flow through and that has no rule of its own.
void expand_dependents(Graph& graph, Values wanted) {
  for (std::size_t i = 0; i < graph.nodes().size();) {
    const auto& node = graph.nodes()[i];
    const bool expands = node.op->composite() && !has_own_gradient(*node.op);
    if (expands && dependents(graph, wanted)[node.outputs.front().index()]) {
      graph.expand_composite(node.id);  // stays at i: the expansion may hold composites, too
    } else {
      ++i;
    }
  }
}

/// The reverse walk. `gradients_[v]` is the sum of the contributions of the readers of v seen so
/// far.
class ReverseWalk {
 public:
  ReverseWalk(Graph& graph, Values wanted)
      : graph_(graph), depends_(dependents(graph, wanted)), gradients_(graph.values().size()) {}

  void run(ValueId loss) {
    const auto& spec = graph_.spec(loss);
    const std::vector<double> one(static_cast<std::size_t>(spec.shape.elements()), 1.0);
    gradients_[loss.index()] = graph_.constant(from_doubles(spec, one));
    for (auto i = graph_.nodes().size(); i-- > 0;) visit(Node(graph_.nodes()[i]));
  }

  ValueId gradient_of(ValueId value) const { return gradients_[value.index()]; }

 private:
  void visit(const Node& node) {
    std::vector<ValueId> output_gradients;
    bool reached = false;
    for (const auto output : node.outputs) {
      output_gradients.push_back(gradients_[output.index()]);
      reached = reached || output_gradients.back().valid();
    }
    const auto wanted = std::make_unique<bool[]>(node.inputs.size());
    bool any = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      wanted[i] = depends_[node.inputs[i].index()];
      any = any || wanted[i];
    }
    if (!reached || !any) return;
    if (!node.op->differentiable()) {
      throw InvalidArgument(
          fmt::format("[{}] has no gradient (node \"{}\")", node.op->name(), node.name));
    }
    const auto scope = graph_.scope(node.name);
    const auto phase = graph_.phase(Phase::Backward, node.outputs.front());
    const auto results = node.op->gradient(
        {graph_, node.inputs, node.outputs, output_gradients, {wanted.get(), node.inputs.size()}});
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (wanted[i] && results[i].valid()) accumulate(node.inputs[i], results[i]);
    }
  }

  void accumulate(ValueId value, ValueId contribution) {
    auto& sum = gradients_[value.index()];
    sum = sum.valid() ? graph_.emit_one(make_op(Binary(BinaryKind::Add)), {sum, contribution})
                      : contribution;
  }

  Graph& graph_;
  std::vector<bool> depends_;
  std::vector<ValueId> gradients_;
};

}  // namespace

std::vector<ValueId> add_gradients(Graph& graph, ValueId loss, Values wanted) {
  if (graph.spec(loss).shape.elements() != 1 || !is_floating(graph.spec(loss).dtype)) {
    throw InvalidArgument(fmt::format("gradients need a scalar floating loss; \"{}\" is {}",
                                      graph.value(loss).name, to_string(graph.spec(loss))));
  }
  expand_dependents(graph, wanted);
  const auto scope = graph.scope(std::string(kGradientScope));
  ReverseWalk walk(graph, wanted);
  walk.run(loss);
  std::vector<ValueId> gradients;
  for (const auto value : wanted) {
    const auto gradient = walk.gradient_of(value);
    gradients.push_back(gradient.valid() ? gradient : graph.constant(Tensor(graph.spec(value))));
  }
  return gradients;
}

}  // namespace triptych
