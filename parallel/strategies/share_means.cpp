// SPDX-License-Identifier: Apache-2.0
// The places of shares in the batch, and their means over ranks.
#include <algorithm>

#include "core/graph/passes/rewrite.h"
#include "core/ops/dropout.h"
#include "core/ops/formula.h"
#include "parallel/strategies/shares.h"

namespace triptych::parallel {

OpPtr drawn_later(const TrainingGraph& training, const Node& node, int later) {
  const auto* dropout = op_cast<Dropout>(*node.op);
  if (later == 0 || dropout == nullptr) return node.op;
  const auto& value = training.graph.value(node.outputs.front());
  if (std::ranges::find(training.drawn_by_row, value.name) == training.drawn_by_row.end())
    return node.op;
  auto own = *dropout;
  own.first_element += later * value.spec.shape.elements();
  return make_op(own);
}

TrainingGraph mean_over_ranks(TrainingGraph training, const RankMeanOptions& options) {
  const auto means = std::move(training.share_means);
  training.share_means.clear();
  if (options.ranks == 1) return training;
  Rewriter rewriter(training.graph);
  for (const auto& node : training.graph.nodes()) {
    const auto& name = training.graph.value(node.outputs.front()).name;
    if (std::ranges::find(means, name) == means.end()) {
      rewriter.copy(node);
      continue;
    }
    auto sum = rewriter.mapped(node.inputs[0]);
    for (const auto& axis : options.axes) {
      AllReduce op;
      op.axis = axis;
      op.order = options.order;
      op.label = "sums of the loss";
      sum = rewriter.append(name + ".over_" + axis, node, make_op(op), std::array{sum}).front();
    }
    const auto ranks = static_cast<double>(options.ranks);
    rewriter.map(node.outputs[0], Formula(rewriter.target()).div(sum, ranks));
  }
  auto graph = rewriter.finish();
  training.graph = std::move(graph);
  return training;
}

}  // namespace triptych::parallel
