// SPDX-License-Identifier: Apache-2.0
#include "core/nn/training_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/autodiff/autodiff.h"
#include "core/nn/initializers.h"
#include "core/ops/optimizers.h"

namespace triptych {
namespace {

/// The update operator and how many moments it keeps per parameter.
std::pair<OpPtr, std::vector<std::string>> update_op(const OptimizerConfig& config) {
  if (config.kind == OptimizerKind::Sgd) {
    SgdUpdate sgd;
    sgd.momentum = config.momentum;
    sgd.weight_decay = config.weight_decay;
    sgd.nesterov = config.nesterov;
    if (config.momentum == 0) return {make_op(sgd), {}};
    return {make_op(sgd), {"velocity"}};
  }
  AdamUpdate adam;
  adam.beta1 = config.beta1;
  adam.beta2 = config.beta2;
  adam.epsilon = config.epsilon;
  adam.weight_decay = config.weight_decay;
  adam.decoupled = config.kind == OptimizerKind::AdamW;
  return {make_op(adam), {"first_moment", "second_moment"}};
}

void add_optimizer(Graph& graph, const OptimizerConfig& config,
                   const std::vector<ValueId>& parameters, const std::vector<ValueId>& gradients) {
  const auto phase = graph.phase(Phase::Update);
  const auto learning_rate = graph.add_input("learning_rate", {DType::F32, Shape{}});
  const auto scope = graph.scope("optimizer");
  std::vector<ValueId> inputs = {
      learning_rate, graph.add_state("step", scalar_tensor<std::int64_t>(0), StateRole::Step)};
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  inputs.insert(inputs.end(), gradients.begin(), gradients.end());
  const auto [op, moments] = update_op(config);
  for (const auto& moment : moments) {
    for (const auto parameter : parameters) {
      const auto& value = graph.value(parameter);
      inputs.push_back(graph.add_state(fmt::format("{}.{}", moment, value.name), Tensor(value.spec),
                                       StateRole::Moment));
    }
  }
  graph.add_node(op, inputs, "update");
}

ValueId output_loss(const Graph& graph) {
  const auto loss = std::ranges::find(graph.outputs(), "loss", &NamedValue::name);
  if (loss == graph.outputs().end())
    throw InvalidArgument("a graph to train has no output \"loss\"; mark_output(\"loss\", ...)");
  return loss->value;
}

std::vector<ValueId> trainable_states(const Graph& graph) {
  auto states = graph.values_of(ValueKind::State);
  std::erase_if(states,
                [&](ValueId state) { return graph.value(state).role != StateRole::Parameter; });
  if (states.empty()) {
    throw InvalidArgument(
        "a graph to train has no parameter; add_state(name, initial, StateRole::Parameter)");
  }
  return states;
}

/// The inputs that are no scalars.
std::vector<std::string> batch_inputs(const Graph& graph) {
  std::vector<std::string> names;
  std::int64_t batch = -1;
  for (const auto input : graph.values_of(ValueKind::Input)) {
    const auto& value = graph.value(input);
    if (value.spec.shape.rank() == 0) continue;
    if (batch < 0) batch = value.spec.shape[0];
    if (value.spec.shape[0] != batch) {
      throw InvalidArgument(fmt::format(
          "the first axis of every input of a graph to train is the batch, but \"{}\" is {} and "
          "\"{}\" has {} rows; what is no part of the batch is a state or a constant",
          value.name, to_string(value.spec), names.front(), batch));
    }
    names.push_back(value.name);
  }
  return names;
}

}  // namespace

TrainingGraph make_training_graph(Graph forward, const OptimizerConfig& optimizer) {
  TrainingGraph result;
  result.batch_inputs = batch_inputs(forward);
  const auto parameters = trainable_states(forward);
  const auto gradients = add_gradients(forward, output_loss(forward), parameters);
  add_optimizer(forward, optimizer, parameters, gradients);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    result.parameters.push_back(forward.value(parameters[i]).name);
    result.parameter_gradients.push_back(forward.value(gradients[i]).name);
  }
  result.graph = std::move(forward);
  return result;
}

TrainingGraph build_training_graph(const ModelConfig& config, const TrainingOptions& options) {
  Graph graph;
  const auto inputs = add_model_inputs(graph, config, options.batch, config.size, config.size);
  NetworkBuilder net{.graph = graph, .seed = options.seed, .training = true, .draw = options.draw};
  const auto logits = build_model(net, config, inputs);
  const auto target =
      graph.add_input("target", target_spec(graph.spec(logits), options.loss, options.weighted));
  const auto loss = training_loss(graph, options.loss, logits, target, options.weighted);
  graph.mark_output("loss", loss);
  graph.mark_output("logits", logits);
  return make_training_graph(std::move(graph), options.optimizer);
}

TrainingStep training_step(const ModelConfig& config, const TrainingOptions& options) {
  return [config, options](std::int64_t batch) {
    auto own = options;
    own.batch = batch;
    return build_training_graph(config, own);
  };
}

Graph build_inference_graph(const ModelConfig& config, std::int64_t batch, std::int64_t height,
                            std::int64_t width, std::optional<std::uint64_t> seed) {
  Graph graph;
  const auto inputs = add_model_inputs(graph, config, batch, height, width);
  NetworkBuilder net{.graph = graph, .seed = seed.value_or(0), .draw = seed.has_value()};
  graph.mark_output("logits", build_model(net, config, inputs));
  return graph;
}

Graph build_statistics_graph(const ModelConfig& config, std::int64_t batch) {
  Graph graph;
  const auto inputs = add_model_inputs(graph, config, batch, config.size, config.size);
  NetworkBuilder net{.graph = graph, .training = true, .momentum = 0, .draw = false};
  graph.mark_output("logits", build_model(net, config, inputs));
  return graph;
}

std::vector<std::string> parameter_names(const ModelConfig& config) {
  Graph graph;
  const auto inputs = add_model_inputs(graph, config, 1, config.size, config.size);
  NetworkBuilder net{.graph = graph, .draw = false};
  build_model(net, config, inputs);
  std::vector<std::string> names;
  for (const auto id : net.parameters) names.push_back(graph.value(id).name);
  return names;
}

}  // namespace triptych
