// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kept_outputs.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/graph/passes/lifetimes.h"

namespace triptych {

namespace {

constexpr auto kNone = std::numeric_limits<std::size_t>::max();

/// Per step: the next one that runs on the same device, or kNone.
std::vector<std::size_t> next_steps(const Plan& plan) {
  std::vector<std::size_t> next(plan.steps.size(), kNone);
  std::vector<std::size_t> later(plan.devices.size(), kNone);
  for (auto i = plan.steps.size(); i-- > 0;) {
    const auto& step = plan.steps[i];
    if (!step.kernel) continue;
    next[i] = std::exchange(later[step.device], i);
  }
  return next;
}

/// Per value: it is an activation, and no output of the graph.
std::vector<bool> inner_values(const Graph& graph) {
  std::vector<bool> is_inner;
  for (const auto& value : graph.values()) {
    is_inner.push_back(value.kind == ValueKind::Activation);
  }
  for (const auto& output : graph.outputs()) is_inner[output.value.index()] = false;
  return is_inner;
}

}  // namespace

void keep_outputs(Plan& plan) {
  const auto consumers = plan.graph.consumers();
  const auto roots = Lifetimes::of(plan.graph).root;
  const auto next = next_steps(plan);
  const auto is_inner = inner_values(plan.graph);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    auto& step = plan.steps[i];
    if (!step.kernel || next[i] == kNone) continue;
    const auto& outputs = plan.graph.node(step.node).outputs;
    if (outputs.size() != 1 || !is_inner[outputs[0].index()]) continue;
    const auto value = outputs[0];
    const auto& reader = plan.steps[next[i]];
    if (roots[value.index()] != value) continue;
    if (consumers[value.index()] != std::vector{reader.node}) continue;
    const auto& inputs = plan.graph.node(reader.node).inputs;
    if (std::ranges::count(inputs, value) != 1) continue;
    const auto input = static_cast<std::size_t>(std::ranges::find(inputs, value) - inputs.begin());
    step.keeps_output = step.kernel->keep_output_for(*reader.kernel, input);
  }
}

}  // namespace triptych
