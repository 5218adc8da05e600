// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/model_plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/random.h"
#include "core/graph/passes/quantize.h"

namespace triptych::measure {

namespace {

/// The pass that follows the others under the int8 contract, with scales that stand for any.
Graph quantize_for_plan(const Graph& graph, ModelPlan& result, bool keep_text) {
  PassReport report{.name = "quantize", .nodes_before = graph.nodes().size()};
  auto quantized = freeze_states(quantize_blank(graph));
  report.nodes_after = quantized.nodes().size();
  if (keep_text) {
    report.text_before = to_text(graph);
    report.text_after = to_text(quantized);
  }
  result.passes.push_back(std::move(report));
  return quantized;
}

}  // namespace

void require_integer_products(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node.op->multiplicands().empty()) continue;
    throw UnsupportedError(fmt::format(
        "under the option contract int8 a model's products must be of integers; node \"{}\" is a "
        "{} of floats",
        node.name, node.op->name()));
  }
}

ModelPlan plan_model(const PlanRequest& request, const DeviceSet& machine) {
  const auto& model = request.model;
  Graph graph;
  if (request.mode == Mode::Train) {
    graph = build_training_graph(model, request.training).graph;
  } else if (request.inference) {
    graph = request.inference(request.training.batch);
  } else {
    graph = build_inference_graph(model, request.training.batch, model.size, model.size,
                                  request.training.seed);
  }
  const PassOptions options = {.inference = request.mode == Mode::Infer,
                               .memory_limit = request.memory_limit_mib << 20,
                               .keep_text = request.keep_text};
  ModelPlan result;
  graph = optimize(std::move(graph), options, &result.passes);
  if (request.mode == Mode::Infer && machine.config().contract == Contract::Int8) {
    if (request.inference) {
      require_integer_products(graph);
    } else {
      graph = quantize_for_plan(graph, result, request.keep_text);
    }
  }
  result.plan = make_plan(std::move(graph), machine.devices(), machine.plan_options());
  return result;
}

void fill_int8(Tensor& tensor, RandomStream& random) {
  for (auto& v : tensor.as<std::int8_t>()) v = static_cast<std::int8_t>(random.below(255) - 127);
}

Tensor noise_of(const Graph& graph, ValueId input) {
  const auto& value = graph.value(input);
  Tensor noise(value.spec);  // zeros
  RandomStream random(1, input.index());
  if (value.spec.dtype == DType::I8) fill_int8(noise, random);
  if (value.spec.dtype != DType::F32) return noise;
  for (auto& v : noise.as<float>()) v = static_cast<float>(random.uniform());
  if (value.name == "learning_rate") std::ranges::fill(noise.as<float>(), 1e-3F);
  return noise;
}

void fill_inputs(Executor& executor) {
  const auto& graph = executor.plan().graph;
  for (const auto id : graph.values_of(ValueKind::Input))
    executor.set_input(graph.value(id).name, noise_of(graph, id));
}

Cost node_cost(const Graph& graph, const Node& node) {
  return node.op->cost(graph.specs(node.inputs), graph.specs(node.outputs));
}

Cost total_cost(const Graph& graph) {
  Cost total;
  for (const auto& node : graph.nodes()) {
    const auto cost = node_cost(graph, node);
    total.flops += cost.flops;
    total.bytes += cost.bytes;
  }
  return total;
}

}  // namespace triptych::measure
