// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/random/judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "backends/all_backends.h"
#include "core/graph/passes/lifetimes.h"
#include "core/graph/passes/passes.h"
#include "core/graph/reference.h"
#include "core/ops/concat.h"
#include "core/runtime/executor.h"
#include "experiments/check/case_runner.h"

namespace triptych::conformance {
namespace {

/// One graph on one machine with states of its own.
class Run {
 public:
  /// `graph` has the inputs of `test`, by name.
  Run(const RandomGraph& test, const Graph& graph, const std::vector<Device*>& devices,
      const PlanOptions& options)
      : states_(*devices[0]), executor_(make_plan(graph.clone(), devices, options), states_) {
    for (const auto& [id, data] : test.inputs) {
      executor_.set_input(test.graph.value(id).name, from_reference(data));
    }
    executor_.run();
  }

  Run(const RandomGraph& test, const Graph& graph, Device& device, const PlanOptions& options)
      : Run(test, graph, std::vector{&device}, options) {}

  Executor& executor() { return executor_; }
  const Plan& plan() const { return executor_.plan(); }

  /// Outputs, then states, by name.
  std::vector<std::pair<std::string, Tensor>> results() {
    std::vector<std::pair<std::string, Tensor>> list;
    for (const auto& output : plan().graph.outputs()) {
      list.emplace_back(output.name, executor_.output(output.name));
    }
    for (const auto& name : states_.names()) list.emplace_back(name, states_.read(name));
    return list;
  }

 private:
  StateStore states_;
  Executor executor_;
};

using NamedValues = std::map<std::string, RefTensor, std::less<>>;

std::string whole_name(const Graph& graph, ValueId output) {
  return "whole." + graph.value(output).name;
}

/// A copy with the results of composites as outputs: their own values go when they are expanded.
Graph with_marked_composites(const Graph& graph) {
  Graph marked = graph.clone();
  for (const auto& node : graph.nodes()) {
    if (!node.op->composite()) continue;
    for (const auto output : node.outputs) marked.mark_output(whole_name(graph, output), output);
  }
  return marked;
}

/// Every value after one run with all values kept. States have been updated by then: their values
/// before, and those of their views, are the initial ones.
NamedValues values_of(Run& run, const RandomGraph& test) {
  const Graph& graph = run.plan().graph;
  const auto roots = Lifetimes::of(graph).root;
  NamedValues values;
  for (const auto& value : test.graph.values()) {
    if (value.data != nullptr) values[value.name] = to_reference(*value.data);
  }
  for (const auto& [id, data] : test.inputs) values[test.graph.value(id).name] = data;
  const auto read = [&](const std::string& name) {
    return to_reference(run.executor().output(name));
  };
  for (const auto& node : graph.nodes()) {
    for (const auto input : node.inputs) {
      const auto& value = graph.value(input);  // a constant of an expansion
      if (!values.contains(value.name)) values[value.name] = read(value.name);
    }
    for (const auto output : node.outputs) {
      const auto& name = graph.value(output).name;
      const bool reads_old =
          node.op->view() && graph.value(roots[output.index()]).kind != ValueKind::Activation;
      values[name] = reads_old ? RefTensor{graph.spec(output),
                                           values.at(graph.value(node.inputs[0]).name).values}
                               : read(name);
    }
  }
  for (const auto& node : test.graph.nodes()) {
    if (!node.op->composite()) continue;
    for (const auto output : node.outputs) {
      values[test.graph.value(output).name] = read(whole_name(test.graph, output));
    }
  }
  return values;
}

std::string judge_node(const Graph& graph, const Node& node, const NamedValues& values,
                       Contract contract) {
  const auto value_of = [&](ValueId id) { return values.at(graph.value(id).name); };
  std::vector<RefTensor> inputs;
  for (const auto input : node.inputs) inputs.push_back(value_of(input));
  const auto expected = run_on_reference(*node.op, inputs, contract);
  const auto allowed = tolerances(*node.op, inputs, expected, contract);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto actual = from_reference(value_of(node.outputs[i]));
    const auto difference = first_difference(actual, expected[i], allowed[i]);
    if (difference.empty()) continue;
    return fmt::format("{} (node \"{}\"), output %{}, {}: {}", to_string(*node.op), node.name,
                       graph.value(node.outputs[i]).name, to_string(contract), difference);
  }
  return {};
}

using Results = std::vector<std::pair<std::string, Tensor>>;

/// The first of `wanted` that `given` does not have with the same bits.
std::string first_other_bits(const Results& given, const Results& wanted) {
  for (const auto& [name, tensor] : wanted) {
    const auto found = std::ranges::find(given, name, &Results::value_type::first);
    if (found == given.end()) return fmt::format("\"{}\" is gone", name);
    if (std::ranges::equal(found->second.bytes(), tensor.bytes())) continue;
    const auto a = to_doubles(found->second), b = to_doubles(tensor);
    const auto at = std::ranges::mismatch(a, b).in1 - a.begin();
    const auto i = static_cast<std::size_t>(at == std::ssize(a) ? 0 : at);
    return fmt::format("\"{}\" has other bits: element {} is {:.9g}, not {:.9g}", name, i, a[i],
                       b[i]);
  }
  return {};
}

/// The bits of `a` and `b` now and after one more run.
std::string compare(Run& a, Run& b) {
  auto difference = first_other_bits(a.results(), b.results());
  if (!difference.empty()) return difference;
  a.executor().run();
  b.executor().run();
  difference = first_other_bits(a.results(), b.results());
  return difference.empty() ? "" : "after a second run, " + difference;
}

PlanOptions with(Contract contract, bool keep_values = false) {
  PlanOptions options;
  options.placement.contract = contract;
  options.keep_values = keep_values;
  return options;
}

/// True when a last bit of an input can decide between values far apart.
bool has_jump(const Graph& graph, const Node& node) {
  const auto name = node.op->name();
  if (name == "Sign" || name == "ReluGradient" || name == "MaxPoolGradient") return true;
  const auto floating = [&](ValueId value) { return is_floating(graph.spec(value).dtype); };
  return std::ranges::any_of(node.inputs, floating) && !std::ranges::all_of(node.outputs, floating);
}

/// How far apart outputs may be when constants are folded, and so rounded in other places.
double folding_tolerance(const Graph& graph) {
  const auto jumps = [&](const Node& node) { return has_jump(graph, node); };
  if (std::ranges::any_of(graph.nodes(), jumps)) return std::numeric_limits<double>::infinity();
  const bool has_half = std::ranges::any_of(graph.values(), [](const Value& value) {
    return is_floating(value.spec.dtype) && value.spec.dtype != DType::F32;
  });
  return has_half ? 0.1 : 1e-3;
}

std::string first_far(const std::string& name, const RefTensor& actual, const RefTensor& expected,
                      double tolerance) {
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double distance = std::fabs(actual.values[i] - expected.values[i]);
    if (distance <= tolerance * (1 + std::fabs(expected.values[i]))) continue;
    return fmt::format("\"{}\" is {} at element {}, expected {}", name, actual.values[i], i,
                       expected.values[i]);
  }
  return {};
}

/// Activations of `before` that are constants of `after`, compared with the reference of `before`.
std::string judge_folded(const RandomGraph& before, const Graph& after, int& count) {
  const auto values = evaluate_reference(before.graph, before.inputs);
  const auto tolerance = folding_tolerance(before.graph);
  for (const auto id : after.values_of(ValueKind::Constant)) {
    const auto& folded = after.value(id);
    if (!before.graph.contains(folded.name)) continue;
    const auto original = before.graph.find(folded.name);
    if (before.graph.value(original).kind != ValueKind::Activation) continue;
    ++count;
    auto difference =
        first_far(folded.name, to_reference(*folded.data), values[original.index()], tolerance);
    if (!difference.empty()) return "folded, " + difference;
  }
  return {};
}

/// The outputs of `after`, a rewritten `before`, within the tolerance by the references of both.
std::string outputs_by_reference(const RandomGraph& before, const Graph& after) {
  std::unordered_map<ValueId, RefTensor> given;
  for (const auto& [id, data] : before.inputs) {
    given[after.find(before.graph.value(id).name)] = data;
  }
  const auto actual = evaluate_reference(after, std::move(given));
  const auto expected = evaluate_reference(before.graph, before.inputs);
  const auto tolerance = folding_tolerance(before.graph);
  for (std::size_t k = 0; k < after.outputs().size(); ++k) {
    const auto& output = after.outputs()[k];
    auto difference = first_far(output.name, actual[output.value.index()],
                                expected[before.graph.outputs()[k].value.index()], tolerance);
    if (!difference.empty()) return difference;
  }
  return {};
}

}  // namespace

Judge::Judge()
    : one_(open_device("cpu", {.threads = 1})),
      two_(open_device("cpu", {.threads = 2})),
      three_(open_device("cpu", {.threads = 3})) {}

std::string Judge::every_node_is_within_its_bound(const RandomGraph& test, Contract contract) {
  const auto expanded = expand_composites(test.graph);
  for (const auto* graph : {&test.graph, &expanded}) {
    for (const auto& node : graph->nodes()) coverage_.ops.insert(std::string(node.op->name()));
  }
  return every_node_is_within_its_bound(test, contract, {{two_.get()}});
}

std::string Judge::every_node_is_within_its_bound(const RandomGraph& test, Contract contract,
                                                  const Machine& machine) {
  Run run(test, with_marked_composites(test.graph), machine.devices, with(contract, true));
  const Graph& graph = run.plan().graph;
  const auto values = values_of(run, test);
  for (const auto& node : graph.nodes()) {
    auto difference = judge_node(graph, node, values, contract);
    if (!difference.empty()) return difference;
  }
  for (const auto& node : test.graph.nodes()) {
    if (!node.op->composite()) continue;
    auto difference = judge_node(test.graph, node, values, contract);
    if (!difference.empty()) return difference;
  }
  return {};
}

std::string Judge::gives_the_bits_of_the_cpu(const RandomGraph& test, Machine& machine) {
  Run cpu(test, test.graph, *two_, with(Contract::Bf16Exact));
  Run other(test, test.graph, machine.devices, with(Contract::Bf16Exact));
  for (const auto& step : other.plan().steps)
    machine.nodes += step.device == 0 && step.entry != nullptr ? 1 : 0;
  return compare(other, cpu);
}

std::string Judge::every_plan_gives_the_same_bits(const RandomGraph& test, Contract contract) {
  Run kept(test, test.graph, *two_, with(contract, true));
  Run shared(test, test.graph, *two_, with(contract));
  count(test.graph, shared.plan());
  return compare(shared, kept);
}

std::string Judge::threads_do_not_matter(const RandomGraph& test) {
  Run one(test, test.graph, *one_, with(Contract::Bf16Exact));
  Run three(test, test.graph, *three_, with(Contract::Bf16Exact));
  return compare(three, one);
}

std::string Judge::training_passes_change_nothing(const RandomGraph& test, Contract contract) {
  const auto peak = peak_activation_bytes(test.graph);
  std::vector<PassReport> reports;
  const auto graph = optimize(test.graph.clone(), {.memory_limit = peak / 2}, &reports);
  coverage_.recomputed += reports.back().nodes_after > reports.back().nodes_before ? 1 : 0;
  int folded = 0;
  auto difference = judge_folded(test, graph, folded);
  coverage_.folded += folded > 0 ? 1 : 0;
  if (!difference.empty()) return difference;
  Run optimized(test, graph, *two_, with(contract));
  if (folded > 0) return outputs_by_reference(test, graph);
  Run original(test, test.graph, *two_, with(contract));
  return compare(optimized, original);
}

std::string Judge::inference_passes_change_little(const RandomGraph& test) {
  const auto updates = [](const Node& node) { return !node.updates().empty(); };
  if (std::ranges::any_of(test.graph.nodes(), updates)) return {};
  const auto graph = optimize(test.graph.clone(), {.inference = true});
  const auto difference = outputs_by_reference(test, graph);
  return difference.empty() ? "" : "for inference, " + difference;
}

void Judge::count(const Graph& graph, const Plan& plan) {
  for (const auto& node : graph.nodes()) coverage_.updates += std::ssize(node.updates());
  const auto roots = Lifetimes::of(plan.graph).root;
  for (const auto& step : plan.steps) {
    const auto& node = plan.graph.node(step.node);
    if (op_cast<Concat>(*node.op) != nullptr) {
      coverage_.concats_in_place += step.entry == nullptr ? 1 : 0;
    } else if (step.entry != nullptr) {
      const auto output = node.outputs[0];
      const auto& location = plan.locations[0][output.index()];
      const bool owns = roots[output.index()] == output;
      coverage_.overwritten += owns && location && location->root != output ? 1 : 0;
    }
  }
}

}  // namespace triptych::conformance
