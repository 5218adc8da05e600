// SPDX-License-Identifier: Apache-2.0
#include "core/nn/training_graph.h"

#include <fmt/core.h>

#include "core/autodiff/autodiff.h"
#include "core/nn/initializers.h"
#include "core/ops/losses.h"
#include "core/ops/optimizers.h"

namespace triptych {
namespace {

ValueId add_target(Graph& graph, const ModelConfig& config, ValueId logits) {
  const auto& spec = graph.spec(logits);
  if (config.classes == 1) return graph.add_input("target", spec);
  return graph.add_input("target",
                         {DType::I64, Shape{spec.shape[0], spec.shape[2], spec.shape[3]}});
}

OpPtr loss_op(const ModelConfig& config, LossKind kind) {
  if (kind == LossKind::Dice) {
    if (config.classes != 1) throw InvalidArgument("--loss dice needs a binary mask (--classes 1)");
    return make_op(DiceLoss{});
  }
  if (config.classes == 1) return make_op(BinaryCrossEntropyWithLogits{});
  return make_op(SoftmaxCrossEntropyLoss{});
}

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
  const auto learning_rate = graph.add_input("learning_rate", {DType::F32, Shape{}});
  const auto scope = graph.scope("optimizer");
  std::vector<ValueId> inputs = {learning_rate,
                                 graph.add_state("step", scalar_tensor<std::int64_t>(0))};
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  inputs.insert(inputs.end(), gradients.begin(), gradients.end());
  const auto [op, moments] = update_op(config);
  for (const auto& moment : moments) {
    for (const auto parameter : parameters) {
      const auto& value = graph.value(parameter);
      inputs.push_back(
          graph.add_state(fmt::format("{}.{}", moment, value.name), Tensor(value.spec)));
    }
  }
  graph.add_node(op, inputs, "update");
}

}  // namespace

OptimizerKind optimizer_from_string(std::string_view name) {
  for (const auto kind : {OptimizerKind::Sgd, OptimizerKind::Adam, OptimizerKind::AdamW}) {
    if (to_string(kind) == name) return kind;
  }
  throw InvalidArgument(fmt::format("unknown optimizer \"{}\"; use sgd, adam or adamw", name));
}

std::string_view to_string(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::Sgd:
      return "sgd";
    case OptimizerKind::Adam:
      return "adam";
    case OptimizerKind::AdamW:
      return "adamw";
  }
  return "";
}

LossKind loss_from_string(std::string_view name) {
  for (const auto kind : {LossKind::CrossEntropy, LossKind::Dice}) {
    if (to_string(kind) == name) return kind;
  }
  throw InvalidArgument(fmt::format("unknown loss \"{}\"; use cross-entropy or dice", name));
}

std::string_view to_string(LossKind kind) {
  return kind == LossKind::Dice ? "dice" : "cross-entropy";
}

TrainingGraph build_training_graph(const ModelConfig& config, const TrainingOptions& options) {
  TrainingGraph result;
  Graph& graph = result.graph;
  const auto x = graph.add_input(
      "x", {DType::F32, Shape{options.batch, config.in_channels, config.size, config.size}});
  NetworkBuilder net{.graph = graph, .seed = options.seed, .training = true};
  const auto logits = build_model(net, config, x);
  const auto target = add_target(graph, config, logits);
  const std::vector<ValueId> loss_inputs = {logits, target};
  const auto loss = graph.add_node(loss_op(config, options.loss), loss_inputs, "loss").front();
  graph.mark_output("loss", loss);
  graph.mark_output("logits", logits);
  const auto gradients = add_gradients(graph, loss, net.parameters);
  add_optimizer(graph, options.optimizer, net.parameters, gradients);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    result.parameters.push_back(graph.value(net.parameters[i]).name);
    result.parameter_gradients.push_back(graph.value(gradients[i]).name);
  }
  return result;
}

Graph build_inference_graph(const ModelConfig& config, std::int64_t batch, std::int64_t height,
                            std::int64_t width, std::optional<std::uint64_t> seed) {
  Graph graph;
  const auto x =
      graph.add_input("x", {DType::F32, Shape{batch, config.in_channels, height, width}});
  NetworkBuilder net{.graph = graph, .seed = seed.value_or(0), .draw = seed.has_value()};
  graph.mark_output("logits", build_model(net, config, x));
  return graph;
}

std::vector<std::string> parameter_names(const ModelConfig& config) {
  Graph graph;
  const auto x =
      graph.add_input("x", {DType::F32, Shape{1, config.in_channels, config.size, config.size}});
  NetworkBuilder net{.graph = graph, .draw = false};
  build_model(net, config, x);
  std::vector<std::string> names;
  for (const auto id : net.parameters) names.push_back(graph.value(id).name);
  return names;
}

}  // namespace triptych
