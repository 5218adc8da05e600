// SPDX-License-Identifier: Apache-2.0
#include "core/graph/reference.h"

#include <fmt/core.h>

#include <algorithm>

namespace triptych {

namespace {

void check_given(const Graph& graph, const std::unordered_map<ValueId, RefTensor>& given) {
  for (const auto& [id, tensor] : given) {
    const auto& wanted = graph.spec(id);
    const bool fits = tensor.spec == wanted &&
                      static_cast<std::int64_t>(tensor.values.size()) == wanted.shape.elements();
    if (fits) continue;
    throw_invalid(
        "evaluate_reference",
        fmt::format("\"{}\" is {}, the given tensor is {} with {} values", graph.value(id).name,
                    to_string(wanted), to_string(tensor.spec), tensor.values.size()));
  }
}

RefTensor leaf(const Value& value) {
  if (value.data == nullptr) {
    throw_invalid("evaluate_reference", fmt::format("the input \"{}\" ({}) is not given",
                                                    value.name, to_string(value.spec)));
  }
  return to_reference(*value.data);
}

}  // namespace

RefTensor to_reference(const Tensor& tensor) { return {tensor.spec(), to_doubles(tensor)}; }

Tensor from_reference(const RefTensor& reference) {
  return from_doubles(reference.spec, reference.values);
}

std::vector<RefTensor> evaluate_reference(const Op& op, std::span<const RefTensor> inputs) {
  std::vector<TensorSpec> specs;
  for (const auto& input : inputs) specs.push_back(input.spec);
  std::vector<RefTensor> outputs;
  for (auto& spec : op.infer(specs)) {
    const auto elements = static_cast<std::size_t>(spec.shape.elements());
    outputs.push_back({std::move(spec), std::vector<double>(elements)});
  }
  op.reference(inputs, outputs);
  return outputs;
}

std::vector<RefTensor> evaluate_reference(const Graph& graph,
                                          std::unordered_map<ValueId, RefTensor> given) {
  check_given(graph, given);
  std::vector<RefTensor> values(graph.values().size());
  for (const auto& value : graph.values()) {
    if (const auto found = given.find(value.id); found != given.end()) {
      values[value.id.index()] = std::move(found->second);
    } else if (value.kind != ValueKind::Activation) {
      values[value.id.index()] = leaf(value);
    }
  }
  for (const auto& node : graph.nodes()) {
    const auto is_given = [&](ValueId id) { return given.contains(id); };
    if (std::all_of(node.outputs.begin(), node.outputs.end(), is_given)) continue;
    std::vector<RefTensor> inputs;
    for (const auto input : node.inputs) inputs.push_back(values[input.index()]);
    auto outputs = evaluate_reference(*node.op, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!is_given(node.outputs[i])) values[node.outputs[i].index()] = std::move(outputs[i]);
    }
  }
  return values;
}

}  // namespace triptych
