// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "core/graph/passes/lifetimes.h"
#include "core/graph/passes/passes.h"
#include "core/graph/passes/rewrite.h"
#include "core/ops/fused_elementwise.h"

namespace triptych {

namespace {

/// A chain that is growing.
struct Chain {
  std::vector<const Node*> nodes;
  std::vector<ChainStep> steps;
  std::vector<ValueId> inputs;

  ValueId last() const { return nodes.back()->outputs[0]; }

  /// The number of an additional input next to input 0, a new one if it is not yet in the list.
  int number(ValueId value) {
    auto found = std::find(inputs.begin() + 1, inputs.end(), value);
    if (found == inputs.end()) found = inputs.insert(found, value);
    return static_cast<int>(found - inputs.begin());
  }
};

class Fusion {
 public:
  Fusion(const Graph& graph, const std::function<bool(const Node&)>& joins)
      : graph_(graph), rewriter_(graph), joins_(joins), roots_(Lifetimes::of(graph).root) {
    for (const auto& node : graph.nodes()) {
      for (const auto& update : node.updates()) updated_.insert(root(update.before));
    }
  }

  Graph run() {
    for (const auto& node : graph_.nodes()) {
      if (!chain_of_.contains(node.id)) find_chain(node);
    }
    for (const auto& node : graph_.nodes()) {
      const auto found = chain_of_.find(node.id);
      if (found == chain_of_.end()) {
        rewriter_.copy(node);
      } else if (const auto& chain = chains_[found->second]; chain.nodes.back()->id == node.id) {
        append(chain);
      }
    }
    return rewriter_.finish();
  }

 private:
  ValueId root(ValueId value) const { return roots_[value.index()]; }

  void find_chain(const Node& first) {
    Chain chain;
    if (!extend(chain, first)) return;
    for (const Node* next = rewriter_.only_reader(chain.last()); next != nullptr;
         next = rewriter_.only_reader(chain.last())) {
      const bool near = next->id.index() - chain.nodes.back()->id.index() <= kMostNodesApart;
      if (!near || chain_of_.contains(next->id) || !extend(chain, *next)) break;
    }
    if (chain.nodes.size() < 2) return;
    for (const Node* node : chain.nodes) chain_of_[node->id] = chains_.size();
    chains_.push_back(std::move(chain));
  }

  /// Appends the node as the chain's next step, if it can be one.
  bool extend(Chain& chain, const Node& node) const {
    auto step = chain_step(*node.op, graph_.specs(node.inputs));
    if (!step || chain.steps.size() == FusedElementwise::kMostSteps || !joins_(node)) return false;
    // A later step would read the updated state.
    const auto reads_updated = [&](ValueId input) { return updated_.contains(root(input)); };
    if (std::ranges::any_of(node.inputs, reads_updated)) return false;
    if (!chain.nodes.empty() && graph_.spec(chain.last()) != graph_.spec(node.outputs[0])) {
      return false;
    }
    const auto inputs_before = chain.inputs;
    if (chain.nodes.empty()) chain.inputs = {node.inputs[0]};
    const auto previous = chain.nodes.empty() ? node.inputs[0] : chain.last();
    const auto operand = [&](ValueId value) {
      return value == previous ? ChainStep::kPrevious : chain.number(value);
    };
    step->a = operand(node.inputs[0]);
    if (!step->unary) step->b = operand(node.inputs[1]);
    if (chain.inputs.size() > FusedElementwise::kMostInputs) {
      chain.inputs = inputs_before;
      return false;
    }
    chain.steps.push_back(*step);
    chain.nodes.push_back(&node);
    return true;
  }

  void append(const Chain& chain) {
    FusedElementwise fused;
    fused.steps = to_string(chain.steps);
    const auto y = rewriter_
                       .append_merged(chain.nodes, *chain.nodes.front(), make_op(std::move(fused)),
                                      rewriter_.mapped(chain.inputs))
                       .front();
    rewriter_.map(chain.last(), y);
  }

  const Graph& graph_;
  Rewriter rewriter_;
  const std::function<bool(const Node&)>& joins_;
  std::vector<ValueId> roots_;
  std::set<ValueId> updated_;  ///< roots of states that some node updates
  std::vector<Chain> chains_;
  std::map<NodeId, std::size_t> chain_of_;  ///< of the nodes that are in one
};

}  // namespace

Graph fuse_elementwise(const Graph& graph, const std::function<bool(const Node&)>& joins) {
  return Fusion(graph, joins).run();
}

}  // namespace triptych
