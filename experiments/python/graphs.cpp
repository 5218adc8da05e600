// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/graphs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "core/runtime/trace.h"
#include "experiments/training/tensors_hash.h"

namespace triptych::python {
namespace {

PlanOptions options_of(const training::DeviceSet& devices, bool keep_values) {
  auto options = devices.plan_options();
  options.keep_values = keep_values;
  return options;
}

}  // namespace

PythonPlan::PythonPlan(Graph graph, const training::ExecutionConfig& config, bool keep_values)
    : devices_(config),
      states_(devices_.set.device()),
      executor_(make_plan(std::move(graph), devices_.set.devices(),
                          options_of(devices_.set, keep_values)),
                states_) {
  const auto& own = executor_.plan().graph;
  for (const auto id : own.values_of(ValueKind::Input)) missing_.insert(own.value(id).name);
}

void PythonPlan::set_inputs(const std::vector<std::pair<std::string, NodeInput>>& inputs) {
  for (const auto& [name, input] : inputs) {
    executor_.set_input(name, input.spec, input.bytes);
    missing_.erase(name);
  }
  if (missing_.empty()) return;
  throw InvalidArgument(
      fmt::format("input \"{}\" was never given; the first run needs all inputs, later ones those "
                  "that change",
                  fmt::join(missing_, "\", \"")));
}

std::vector<std::pair<std::string, Tensor>> PythonPlan::run(
    const std::vector<std::pair<std::string, NodeInput>>& inputs) {
  const std::lock_guard lock(devices_.busy);
  set_inputs(inputs);
  executor_.run();
  std::vector<std::pair<std::string, Tensor>> outputs;
  const auto& named = executor_.plan().graph.outputs();
  outputs.reserve(named.size());
  for (const auto& [name, value] : named) outputs.emplace_back(name, executor_.output(name));
  return outputs;
}

double PythonPlan::seconds_per_call(const std::vector<std::pair<std::string, NodeInput>>& inputs,
                                    int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    run(inputs);
  }
  const std::chrono::duration<double> total = std::chrono::steady_clock::now() - start;
  return total.count() / calls;
}

std::string PythonPlan::trace(const std::vector<std::pair<std::string, NodeInput>>& inputs) {
  const std::lock_guard lock(devices_.busy);
  set_inputs(inputs);
  const auto profile = executor_.run_profiled();
  return to_chrome_trace(executor_.plan(), profile);
}

Tensor PythonPlan::output(const std::string& name) {
  const std::lock_guard lock(devices_.busy);
  return executor_.output(name);
}

std::string PythonPlan::weights_sha256() {
  std::vector<std::string> names;
  const auto& graph = executor_.plan().graph;
  for (const auto id : graph.values_of(ValueKind::State)) {
    if (graph.value(id).role == StateRole::Parameter) names.push_back(graph.value(id).name);
  }
  std::ranges::sort(names);
  training::TensorsHash hash;
  for (const auto& name : names) hash.add(name, state(name));
  return hash.finish();
}

Tensor PythonPlan::state(const std::string& name) {
  const std::lock_guard lock(devices_.busy);
  return states_.read(name);
}

void PythonPlan::set_state(const std::string& name, const Tensor& value) {
  const std::lock_guard lock(devices_.busy);
  states_.write(name, value);
}

KernelCounterTable PythonPlan::kernel_counters() {
  const std::lock_guard lock(devices_.busy);
  return devices_.set.device().kernel_counters();
}

std::map<std::string, double> PythonPlan::counters() {
  const std::lock_guard lock(devices_.busy);
  return devices_.counters();
}

}  // namespace triptych::python
