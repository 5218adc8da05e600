// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kept_outputs.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/graph/passes/lifetimes.h"

namespace triptych {

namespace {

/// The value that the step may keep on its device, as far as the graph allows: an activation with
/// one reader.
std::optional<ValueId> output_to_keep(const Plan& plan, const Step& step) {
  const auto& outputs = plan.graph.node(step.node).outputs;
  if (outputs.size() != 1 || plan.graph.value(outputs[0]).kind != ValueKind::Activation) return {};
  const auto is_it = [&](const auto& output) { return output.value == outputs[0]; };
  if (std::ranges::any_of(plan.graph.outputs(), is_it)) return {};
  return outputs[0];
}

}  // namespace

void keep_outputs(Plan& plan) {
  const auto consumers = plan.graph.consumers();
  const auto roots = Lifetimes::of(plan.graph).root;
  for (auto step = plan.steps.begin(); step != plan.steps.end(); ++step) {
    if (!step->kernel) continue;
    const auto value = output_to_keep(plan, *step);
    if (!value || roots[value->index()] != *value) continue;
    const auto next = std::find_if(step + 1, plan.steps.end(), [&](const Step& other) {
      return other.kernel && other.device == step->device;
    });
    if (next == plan.steps.end()) continue;
    const auto& inputs = plan.graph.node(next->node).inputs;
    if (consumers[value->index()] != std::vector{next->node}) continue;
    if (std::ranges::count(inputs, *value) != 1) continue;
    const auto input = static_cast<std::size_t>(std::ranges::find(inputs, *value) - inputs.begin());
    step->keeps_output = step->kernel->keep_output_for(*next->kernel, input);
  }
}

}  // namespace triptych
