// SPDX-License-Identifier: Apache-2.0
#include "experiments/check/case_runner.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/graph/reference.h"
#include "core/ops/collectives.h"
#include "core/ops/transpose.h"
#include "core/runtime/executor.h"
#include "parallel/comm/thread_group.h"
#include "parallel/strategies/rank_collectives.h"

namespace triptych::conformance {
namespace {

/// Half the distance from 1 to the next number of the dtype, or 0 for exact dtypes.
double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return 0x1p-24;
    case DType::F16:
      return 0x1p-11;
    case DType::BF16:
      return 0x1p-8;
    default:
      return 0;
  }
}

Tensor fill(const InputRule& rule, RandomStream& random) {
  if (!rule.values.empty()) return from_doubles(rule.spec, rule.values);
  std::vector<double> values(static_cast<std::size_t>(rule.spec.shape.elements()));
  for (auto& value : values) {
    const double uniform = random.bits() * 0x1p-32;
    value = is_floating(rule.spec.dtype)
                ? rule.low + (rule.high - rule.low) * uniform
                : std::floor(rule.low + (rule.high - rule.low + 1) * uniform);
  }
  return from_doubles(rule.spec, values);
}

bool rounds_operands(Contract contract) {
  return contract == Contract::Bf16 || contract == Contract::Bf16Exact;
}

/// True when a product in the expansion of `op` rounds other values than the operator's
/// multiplicands: results of its other nodes, or an input that is read without rounding, too.
bool multiplies_between(const Op& op, Specs inputs) {
  if (!op.composite() || op.multiplicands().empty()) return false;
  Graph graph;
  std::vector<ValueId> ids;
  for (const auto& spec : inputs)
    ids.push_back(graph.add_input(fmt::format("x{}", ids.size()), spec));
  op.expand(graph, ids);
  const auto computes = [&](ValueId value) {
    const auto input = std::ranges::find(ids, value);
    if (input != ids.end()) return std::ranges::count(op.multiplicands(), input - ids.begin()) == 0;
    const auto producer = graph.value(value).producer;
    return producer.valid() && !op_cast<Transpose>(*graph.node(producer).op) &&
           !graph.node(producer).op->view();
  };
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return std::ranges::any_of(node.op->multiplicands(), [&](int i) {
      return computes(node.inputs[static_cast<std::size_t>(i)]);
    });
  });
}

void round_to_multiplicand(RefTensor& tensor) {
  for (auto& value : tensor.values) {
    const float rounded = round_to_bf16(static_cast<float>(value));
    value = std::fabs(rounded) < 0x1p-126F ? 0.0 : static_cast<double>(rounded);
  }
}

/// Elements may be that much further off than the most distant one of a trial, which rounds at
/// other places than a kernel.
constexpr double kRoundings = 4;

/// The largest distance, per output, between `expected` and the expansion of `op` in float64 with
/// all operands of its products rounded.
std::vector<double> distances_by_rounding(const Op& op, const std::vector<RefTensor>& inputs,
                                          const std::vector<RefTensor>& expected,
                                          Contract contract) {
  Graph graph;
  std::vector<RefTensor> values;
  std::vector<ValueId> ids;
  ids.reserve(inputs.size());
  for (const auto& input : inputs) {
    ids.push_back(graph.add_input(fmt::format("x{}", ids.size()), input.spec));
  }
  const auto outputs = op.expand(graph, ids);
  values.resize(graph.values().size());
  for (std::size_t i = 0; i < ids.size(); ++i) values[ids[i].index()] = inputs[i];
  for (const auto& value : graph.values()) {
    if (value.data != nullptr) values[value.id.index()] = to_reference(*value.data);
  }
  for (const auto& node : graph.nodes()) {
    std::vector<RefTensor> operands;
    for (const auto input : node.inputs) operands.push_back(values[input.index()]);
    auto results = run_on_reference(*node.op, std::move(operands), contract);
    for (std::size_t i = 0; i < results.size(); ++i) {
      values[node.outputs[i].index()] = std::move(results[i]);
    }
  }
  std::vector<double> distances;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    double& distance = distances.emplace_back(0);
    const auto& rounded = values[outputs[i].index()].values;
    for (std::size_t j = 0; j < rounded.size(); ++j) {
      distance = std::max(distance, std::fabs(rounded[j] - expected[i].values[j]));
    }
  }
  return distances;
}

}  // namespace

std::vector<Tensor> make_inputs(const OpCase& test, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const auto& rule : test.inputs) {
    RandomStream random(seed, inputs.size());
    inputs.push_back(fill(rule, random));
  }
  return inputs;
}

Graph make_graph(const OpCase& test, const std::vector<Tensor>& inputs) {
  Graph graph;
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto name = fmt::format("x{}", i);
    if (test.inputs[i].state) {
      ids.push_back(graph.add_state(name, inputs[i].clone()));
    } else if (test.inputs[i].constant) {
      ids.push_back(graph.add_constant(name, std::make_shared<const Tensor>(inputs[i].clone())));
    } else {
      ids.push_back(graph.add_input(name, inputs[i].spec()));
    }
  }
  const auto outputs = graph.add_node(test.op, ids);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    graph.mark_output(fmt::format("y{}", i), outputs[i]);
  }
  return graph;
}

/// Messages of the only rank to itself, so that Receive has the data of its reference.
std::vector<std::byte> zeros_to_receive(const OpCase& test) {
  std::size_t bytes = 0;
  if (op_cast<Receive>(*test.op) != nullptr)
    for (const auto& spec : test.op->infer({})) bytes += spec.bytes();
  return std::vector<std::byte>(bytes);
}

std::vector<Tensor> run_on_device(const OpCase& test, const std::vector<Tensor>& inputs,
                                  Device& device, Contract contract, Device* host,
                                  std::string_view kernel) {
  std::vector<Device*> devices = {&device};
  parallel::ThreadGroup group(1, parallel::Seconds(1));
  parallel::Communicator alone(group.transport(0));
  parallel::RankCollectives collectives(alone);
  const auto zeros = zeros_to_receive(test);
  if (!zeros.empty()) alone.send(0, zeros, "zeros");
  PlanOptions options;
  options.placement.collectives = &collectives;
  options.placement.contract = contract;
  if (!kernel.empty()) options.placement.forced_kernels[std::string(test.op->name())] = kernel;
  if (host != nullptr) {
    devices.push_back(host);
    options.placement.host = 1;
  }
  StateStore states(device);
  Executor executor(make_plan(make_graph(test, inputs), devices, options), states);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (test.inputs[i].state || test.inputs[i].constant) continue;
    executor.set_input(fmt::format("x{}", i), inputs[i]);
  }
  executor.run();
  std::vector<Tensor> outputs;
  for (const auto& output : executor.plan().graph.outputs()) {
    outputs.push_back(executor.output(output.name));
  }
  return outputs;
}

std::vector<const KernelEntry*> accepting_kernels(const OpCase& test,
                                                  const std::vector<Tensor>& inputs, Device& device,
                                                  Contract contract) {
  std::vector<TensorSpec> specs;
  std::vector<Operand> in, out;
  std::vector<const Tensor*> constants;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    specs.push_back(inputs[i].spec());
    in.push_back(Operand::dense(specs.back()));
    constants.push_back(test.inputs[i].constant ? &inputs[i] : nullptr);
  }
  for (const auto& spec : test.op->infer(specs)) out.push_back(Operand::dense(spec));
  std::vector<const KernelEntry*> accepting;
  for (const auto& entry : device.kernels()) {
    if (entry.op == test.op->name() &&
        entry.accepts({*test.op, in, out, contract, constants}).accepted) {
      accepting.push_back(&entry);
    }
  }
  return accepting;
}

std::vector<RefTensor> to_references(const std::vector<Tensor>& tensors) {
  std::vector<RefTensor> references;
  references.reserve(tensors.size());
  for (const auto& tensor : tensors) references.push_back(to_reference(tensor));
  return references;
}

std::vector<RefTensor> run_on_reference(const Op& op, std::vector<RefTensor> inputs,
                                        Contract contract) {
  if (rounds_operands(contract)) {
    for (const int i : op.multiplicands()) {
      round_to_multiplicand(inputs[static_cast<std::size_t>(i)]);
    }
  }
  return evaluate_reference(op, inputs);
}

std::vector<std::vector<double>> tolerances(const Op& op, std::vector<RefTensor> inputs,
                                            const std::vector<RefTensor>& expected,
                                            Contract contract, Accuracy accuracy) {
  std::vector<TensorSpec> specs;
  specs.reserve(inputs.size());
  for (const auto& input : inputs) specs.push_back(input.spec);
  auto bound = op.error_bound(specs);
  const auto given = inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_floating(specs[i].dtype)) continue;  // indices and labels have no magnitude
    if (bound.linear_in >= 0 && bound.linear_in != static_cast<int>(i)) continue;
    for (auto& value : inputs[i].values) value = std::fabs(value);
  }
  const bool rounds_between = rounds_operands(contract) && multiplies_between(op, specs);
  // Without terms there is no magnitude that the rounding is a part of: it is tried.
  std::vector<double> rounding(expected.size(), 0.0);
  if (rounds_between && bound.terms == 0) {
    rounding = distances_by_rounding(op, given, expected, contract);
  } else if (rounds_between) {
    bound.terms += 2 * unit_roundoff(DType::BF16) / unit_roundoff(DType::F32);
  }
  if (accuracy == Accuracy::RoundedResult) {
    bound.terms += unit_roundoff(DType::BF16) / unit_roundoff(DType::F32);
  }
  std::vector<RefTensor> magnitude = expected;
  if (bound.terms > 0) magnitude = evaluate_reference(op, inputs);
  std::vector<std::vector<double>> result;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double unit = unit_roundoff(expected[i].spec.dtype);
    auto& list = result.emplace_back();
    for (std::size_t j = 0; j < expected[i].values.size(); ++j) {
      const double sum = 2 * bound.terms * std::fabs(magnitude[i].values[j]);
      const double relative = bound.ulps * std::fabs(expected[i].values[j]);
      const double absolute = bound.absolute + kRoundings * rounding[i] + 0x1p-126;
      list.push_back(unit == 0 ? 0 : unit * (sum + relative) + absolute);
    }
  }
  return result;
}

std::string first_difference(const Tensor& actual, const RefTensor& expected,
                             const std::vector<double>& tolerance) {
  if (actual.spec() != expected.spec) {
    return fmt::format("got {}, expected {}", to_string(actual.spec()), to_string(expected.spec));
  }
  const auto values = to_doubles(actual);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double want = expected.values[i];
    const bool same = values[i] == want || (std::isnan(values[i]) && std::isnan(want));
    if (same || std::fabs(values[i] - want) <= tolerance[i]) continue;
    return fmt::format("element {}: got {:.9g}, expected {:.9g}, distance {:.3g}, allowed {:.3g}",
                       i, values[i], want, std::fabs(values[i] - want), tolerance[i]);
  }
  return {};
}

}  // namespace triptych::conformance
