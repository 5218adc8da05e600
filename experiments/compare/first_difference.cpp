// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/first_difference.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"

namespace triptych::compare {
namespace {

using training::DeviceSet;
using training::TrainingRun;

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto x = a.bytes(), y = b.bytes();
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0);
}

/// One machine in training.
class Side {
 public:
  Side(const MachineRequest& request, const Experiment& experiment)
      : machine_(request.config),
        run_(machine_, experiment.run, run_folder(experiment, request), experiment.load),
        batch_(run_.config().training.batch) {}

  /// One step of the run; returns the loss.
  float train(std::int64_t step) {
    const auto images = run_.batcher().draw(step * batch_, batch_);
    return run_.trainer().step(images.x, images.y, run_.learning_rate(step));
  }

  TensorMap states() {
    TensorMap states;
    for (const auto& [name, source] : run_.trainer().state_sources())
      states.emplace(name, source.read());
    return states;
  }

  /// One step from `states` on, of which every value can then be read by its name.
  std::unique_ptr<Executor> run_kept(std::int64_t step, const TensorMap& states) {
    const auto& config = run_.config();
    auto graph = optimize(build_training_graph(config.model, config.training).graph,
                          {.memory_limit = config.memory_limit_mib << 20});
    auto options = machine_.plan_options();
    options.keep_values = true;
    kept_states_ = std::make_unique<StateStore>(machine_.device());
    auto executor = std::make_unique<Executor>(
        make_plan(std::move(graph), machine_.devices(), options), *kept_states_);
    for (const auto& [name, tensor] : states) kept_states_->write(name, tensor);
    const auto images = run_.batcher().draw(step * batch_, batch_);
    executor->set_input("x", images.x);
    executor->set_input("target", images.y);
    executor->set_input("learning_rate", scalar_tensor(run_.learning_rate(step)));
    executor->run();
    return executor;
  }

 private:
  DeviceSet machine_;
  TrainingRun run_;
  std::int64_t batch_;
  std::unique_ptr<StateStore> kept_states_;
};

double value_at(const Tensor& tensor, std::size_t index) {
  return visit_dtype(tensor.dtype(), [&](auto tag) {
    return double{static_cast<float>(tensor.as<decltype(tag)>()[index])};
  });
}

/// Which elements of a value differ in some bit.
void compare_elements(const Tensor& a, const Tensor& b, Difference& difference) {
  const auto size = dtype_size(a.dtype());
  const auto *x = a.bytes().data(), *y = b.bytes().data();
  difference.of = a.elements();
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (std::memcmp(x + at * size, y + at * size, size) == 0) continue;
    if (difference.different_elements++ > 0) continue;
    difference.element = i;
    difference.values[0] = value_at(a, at);
    difference.values[1] = value_at(b, at);
  }
}

/// The first value, in order of the first plan, that both have and that differs.
void compare_values(const Executor& first, const Executor& second, Difference& difference) {
  const auto& graph = first.plan().graph;
  for (const auto& step : first.plan().steps) {
    const auto& node = graph.node(step.node);
    for (std::size_t output = 0; output < node.outputs.size(); ++output) {
      const auto& name = graph.value(node.outputs[output]).name;
      if (!second.plan().graph.contains(name)) continue;
      const Tensor a = first.output(name), b = second.output(name);
      if (a.spec() != b.spec() || same_bits(a, b)) continue;
      difference.node = node.name;
      difference.output = output;
      compare_elements(a, b, difference);
      return;
    }
  }
}

bool same_states(const TensorMap& a, const TensorMap& b) {
  return std::ranges::all_of(a, [&](const auto& state) {
    const auto other = b.find(state.first);
    return other != b.end() && same_bits(state.second, other->second);
  });
}

/// A second run goes to folders of its own.
Experiment apart(Experiment experiment) {
  experiment.folder /= "difference";
  return experiment;
}

}  // namespace

std::string promise_of(const MachineRequest& first, const MachineRequest& second) {
  const auto a = first.config.contract, b = second.config.contract;
  if (a != b) {
    return fmt::format("contracts differ: {} computes in {}, {} in {}", first.label, to_string(a),
                       second.label, to_string(b));
  }
  if (a == Contract::Bf16Exact || a == Contract::Int8) {
    return fmt::format("{} promises the same bits on every machine: this is a fault", to_string(a));
  }
  return fmt::format(
      "{} lets each machine add in an order of its own; bf16-exact promises the same bits",
      to_string(a));
}

Difference find_difference(const MachineRequest& first, const MachineRequest& second,
                           const Experiment& experiment, std::int64_t steps,
                           const std::atomic<bool>& interrupted) {
  Difference difference = {
      .first = first.label, .second = second.label, .node = {}, .why = promise_of(first, second)};
  const auto own = apart(experiment);
  Side a(first, own), b(second, own);
  TensorMap before = a.states();
  for (std::int64_t step = 0; step < steps && !interrupted; ++step) {
    const float loss_a = a.train(step), loss_b = b.train(step);
    auto after = a.states();
    const bool same = std::bit_cast<std::uint32_t>(loss_a) == std::bit_cast<std::uint32_t>(loss_b);
    if (same && same_states(after, b.states())) {
      before = std::move(after);
      continue;
    }
    difference.step = step;
    const auto kept_a = a.run_kept(step, before), kept_b = b.run_kept(step, before);
    compare_values(*kept_a, *kept_b, difference);
    return difference;
  }
  return difference;
}

}  // namespace triptych::compare
