// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/layers.h"

#include <algorithm>

#include "core/autodiff/autodiff.h"
#include "core/base/mapped.h"
#include "core/base/median.h"
#include "core/graph/passes/passes.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/matmul.h"
#include "experiments/compare/machine_run.h"

namespace triptych::compare {
namespace {

constexpr int kProfiledSteps = 5;

Cost cost_of(const Graph& graph, const Node& node) {
  return node.op->cost(graph.specs(node.inputs), graph.specs(node.outputs));
}

double flops_without_recomputation(const training::RunConfig& config) {
  const auto graph = optimize(build_training_graph(config.model, config.training).graph, {});
  double flops = 0;
  for (const auto& node : graph.nodes()) flops += cost_of(graph, node).flops;
  return flops;
}

/// "down1" of "down1.conv0" and of its gradient "grad.down1.conv0.convweightgradient".
std::string stage_of(const Node& node) {
  const auto first = node.stands_for().front();
  const auto begin = node.phase == Phase::Backward ? kGradientScope.size() + 1 : 0;
  return first.substr(begin, first.find('.', begin) - begin);
}

std::vector<Layer> layers_of(const training::DeviceSet& machine, const Plan& plan) {
  std::vector<Layer> layers;
  const auto options = machine.plan_options();
  const bool has_host = machine.host_share(plan).has_value();
  for (const auto& step : plan.steps) {
    const auto& node = plan.graph.node(step.node);
    auto& layer = layers.emplace_back();
    layer.node = node.name;
    layer.op = node.op->name();
    layer.pass = to_string(node.phase);
    layer.stage = stage_of(node);
    layer.device = has_host && step.device == 1 ? "host" : plan.devices[step.device]->info().name;
    layer.why = reason_of(plan, step);
    layer.cost = cost_of(plan.graph, node);
    layer.macs = macs_of(plan.graph, node);
    if (step.entry == nullptr) continue;
    layer.kernel = step.entry->name;
    if (step.entry->traffic == nullptr) continue;
    const NodeQuery query(plan.graph, node, options.placement);
    layer.traffic = step.entry->traffic(query, *plan.devices[step.device]);
  }
  return layers;
}

/// By how much each counter grew.
std::map<std::string, double> grown(const std::map<std::string, double>& before,
                                    std::map<std::string, double> after) {
  for (const auto& [name, value] : before) after[name] -= value;
  return after;
}

/// Profiles of the next steps. The counters are of the last one.
std::vector<std::vector<StepProfile>> profile_steps(const training::DeviceSet& machine,
                                                    training::TrainingRun& run, int count,
                                                    StepAnatomy& anatomy) {
  std::vector<std::vector<StepProfile>> profiles;
  const auto first = std::ssize(run.losses());
  const auto batch = run.config().training.batch;
  for (int i = 0; i < count; ++i) {
    const auto images = run.batcher().draw(first * batch, batch);
    const auto before = machine.device().counters();
    const auto traces = run.trainer().trace_step(images.x, images.y, run.learning_rate(first));
    anatomy.counters = grown(before, machine.device().counters());
    profiles.push_back(traces.front().run.profile);
  }
  return profiles;
}

}  // namespace

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::Forward:
      return "forward";
    case Phase::Backward:
      return "backward";
    case Phase::Update:
      return "optimizer";
  }
  return "";
}

double macs_of(const Graph& graph, const Node& node) {
  const auto shape = [&](std::size_t input) -> const Shape& {
    return graph.spec(node.inputs[input]).shape;
  };
  if (const auto* conv = op_cast<Conv>(*node.op)) return conv->geometry(shape(0), shape(1)).macs();
  if (const auto* transposed = op_cast<ConvTranspose>(*node.op))
    return transposed->geometry(shape(0), shape(1)).macs();
  if (const auto* gradient = op_cast<ConvWeightGradient>(*node.op))
    return gradient->geometry(shape(0), shape(1)).macs();
  return op_cast<MatMul>(*node.op) != nullptr ? cost_of(graph, node).flops / 2 : 0;
}

StepAnatomy dissect_step(const training::DeviceSet& machine, training::TrainingRun& run,
                         bool timed) {
  const auto& plan = run.trainer().plan();
  StepAnatomy anatomy;
  anatomy.layers = layers_of(machine, plan);
  anatomy.model_flops = flops_without_recomputation(run.config());
  anatomy.facts = machine.device().info().facts;
  const auto host = machine.host_share(plan);
  if (host) anatomy.host_seconds = host->time.seconds;
  if (!timed) return anatomy;
  const bool varies = machine.device().info().time_kind == TimeKind::Measured;
  const auto profiles = profile_steps(machine, run, varies ? kProfiledSteps : 1, anatomy);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    auto& layer = anatomy.layers[i];
    if (plan.steps[i].entry == nullptr) continue;
    const bool on_host = host && plan.steps[i].device == 1;
    auto samples =
        mapped<double>(profiles, [&](const auto& profile) { return profile[i].time.seconds; });
    layer.time = on_host ? machine.host_time(plan, plan.steps[i])
                         : Duration{median_of(samples), profiles.front()[i].time.kind};
  }
  return anatomy;
}

}  // namespace triptych::compare
