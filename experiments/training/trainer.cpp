// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/graph/passes/passes.h"
#include "core/io/sha256.h"

namespace triptych::training {

Trainer::Trainer(const Machine& machine, const TrainerConfig& config)
    : config_(config), states_(machine.device()) {
  auto training = build_training_graph(config.model, config.options);
  parameters_ = std::move(training.parameters);
  std::ranges::sort(parameters_);
  Graph graph =
      optimize(std::move(training.graph), {.memory_limit = config.memory_limit_mib << 20});
  executor_ = std::make_unique<Executor>(
      make_plan(std::move(graph), machine.devices(), machine.plan_options()), states_);
}

void Trainer::set_inputs(const Tensor& x, const Tensor& target, float learning_rate) {
  executor_->set_input("x", x);
  executor_->set_input("target", target);
  executor_->set_input("learning_rate", scalar_tensor(learning_rate));
}

float Trainer::step(const Tensor& x, const Tensor& target, float learning_rate) {
  set_inputs(x, target, learning_rate);
  executor_->run();
  return executor_->output("loss").as<float>()[0];
}

std::optional<std::string> Trainer::step_until_not_finite(const Tensor& x, const Tensor& target,
                                                          float learning_rate) {
  set_inputs(x, target, learning_rate);
  const auto node = executor_->run_until_not_finite();
  if (!node) return std::nullopt;
  return plan().graph.node(*node).name;
}

TensorSources Trainer::state_sources() const {
  TensorSources sources;
  for (const auto id : plan().graph.values_of(ValueKind::State)) {
    const auto& value = plan().graph.value(id);
    sources.emplace(value.name, TensorSource{value.spec, [this, &name = value.name] {
                                               return states_.read(name);
                                             }});
  }
  return sources;
}

void Trainer::restore(const TensorMap& states) {
  const auto names = states_.names();
  for (const auto& name : names) {
    if (!states.contains(name)) {
      throw InvalidArgument(
          fmt::format("the checkpoint has no \"{}\"; is it of another model?", name));
    }
  }
  if (states.size() != names.size()) {
    throw InvalidArgument("the checkpoint has tensors that the model does not have");
  }
  for (const auto& [name, tensor] : states) states_.write(name, tensor);
}

std::string Trainer::weights_sha256() const {
  Sha256 hash;
  for (const auto& name : parameters_) {
    hash.update(std::as_bytes(std::span(name)));
    hash.update(states_.read(name).bytes());
  }
  return hash.finish();
}

std::int64_t Trainer::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& name : parameters_) {
    count += plan().graph.spec(plan().graph.find(name)).shape.elements();
  }
  return count;
}

}  // namespace triptych::training
