// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/step_parts.h"

#include <algorithm>
#include <set>

namespace triptych::parallel {

Anatomy::Anatomy(const TrainingGraph& training)
    : graph_(training.graph),
      forward_count_(static_cast<std::size_t>(
          std::ranges::count(graph_.nodes(), Phase::Forward, &Node::phase))) {}

const Value& loss_value(const TrainingGraph& training) {
  const auto& outputs = training.graph.outputs();
  const auto loss = std::ranges::find(outputs, "loss", &NamedValue::name);
  TRIPTYCH_ASSERT(loss != outputs.end());
  return training.graph.value(loss->value);
}

const Node& update_node(const TrainingGraph& training) {
  const auto& nodes = training.graph.nodes();
  const auto update = std::ranges::find(nodes, Phase::Update, &Node::phase);
  TRIPTYCH_ASSERT(update != nodes.end());
  return *update;
}

ValueId learning_rate(const TrainingGraph& training) {
  return update_node(training).inputs.front();
}

std::vector<std::vector<ValueId>> group_by_first_reader(const TrainingGraph& training,
                                                        std::size_t limit) {
  const Graph& graph = training.graph;
  std::set<ValueId> open;
  for (const auto& name : training.parameters) open.insert(graph.find(name));
  std::vector<std::vector<ValueId>> groups;
  std::size_t bytes = limit;
  for (const auto& node : graph.nodes()) {
    for (const auto input : node.inputs) {
      if (open.erase(input) == 0) continue;
      const auto size = graph.spec(input).bytes();
      if (groups.empty() || bytes + size > limit) {
        groups.emplace_back();
        bytes = 0;
      }
      bytes += size;
      groups.back().push_back(input);
    }
  }
  return groups;
}

}  // namespace triptych::parallel
