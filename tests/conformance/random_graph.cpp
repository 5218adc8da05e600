// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/random_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/autodiff/autodiff.h"
#include "core/graph/reference.h"
#include "core/ops/formula.h"
#include "tests/conformance/random/makers.h"

namespace triptych::conformance {
namespace {

constexpr std::size_t kMoreProducts = 6;

/// Each maker as often as its weight, those of products `more` times as often.
std::vector<Maker> weighted_makers(bool smooth, std::size_t more = 1) {
  std::vector<Maker> all, products;
  add_elementwise_makers(all);
  add_reduction_makers(all);
  add_movement_makers(all);
  add_resampling_makers(all);
  add_product_makers(products);
  add_quantized_makers(products);
  add_pool_makers(all);
  add_normalization_makers(all);
  add_training_makers(all);
  std::vector<Maker> weighted;
  for (const auto& maker : all) {
    if (maker.smooth || !smooth) weighted.insert(weighted.end(), maker.weight, maker);
  }
  for (const auto& maker : products) {
    if (maker.smooth || !smooth) weighted.insert(weighted.end(), more * maker.weight, maker);
  }
  return weighted;
}

/// The parts of `from` that `keeps_node` and `outputs` name. Values of dropped nodes are inputs.
RandomGraph rebuild(const RandomGraph& from, const std::vector<bool>& keeps_node,
                    const std::vector<NamedValue>& outputs) {
  const auto values = evaluate_reference(from.graph, from.inputs);
  RandomGraph result;
  std::vector<ValueId> ids(values.size());
  const auto add_input = [&](const Value& value) {
    const auto id = result.graph.add_input(value.name, value.spec);
    result.inputs[id] = to_reference(from_reference(values[value.id.index()]));
    return id;
  };
  const auto leaf = [&](const Value& value) {
    if (value.kind == ValueKind::Constant) return result.graph.add_constant(value.name, value.data);
    if (value.kind == ValueKind::State) return result.graph.add_state(value.name, value.data);
    return add_input(value);
  };
  const auto id_of = [&](ValueId value) {
    auto& id = ids[value.index()];
    if (!id.valid()) id = leaf(from.graph.value(value));
    return id;
  };
  for (const auto& node : from.graph.nodes()) {
    if (!keeps_node[node.id.index()]) continue;
    std::vector<ValueId> inputs;
    for (const auto input : node.inputs) inputs.push_back(id_of(input));
    const auto results = result.graph.add_node(node.op, inputs, node.name);
    for (std::size_t i = 0; i < results.size(); ++i) ids[node.outputs[i].index()] = results[i];
  }
  for (const auto& output : outputs) result.graph.mark_output(output.name, id_of(output.value));
  return result;
}

/// The graph without node `i`, or else without output `i - nodes`. Nothing when that is no valid
/// graph or passes.
std::optional<RandomGraph> without(const RandomGraph& graph, std::size_t i, const Check& check) {
  const auto node_count = graph.graph.nodes().size();
  std::vector<bool> keeps_node(node_count, true);
  auto outputs = graph.graph.outputs();
  if (i < node_count) {
    keeps_node[i] = false;
    std::erase_if(outputs, [&](const NamedValue& output) {
      const auto& value = graph.graph.value(output.value);
      return value.kind == ValueKind::Activation && value.producer.index() == i;
    });
  } else {
    outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(i - node_count));
  }
  try {
    auto smaller = rebuild(graph, keeps_node, outputs);
    verify(smaller.graph);
    if (!check(smaller).empty()) return smaller;
  } catch (const InvalidArgument&) {
    // An update of a value that is no state any more.
  }
  return std::nullopt;
}

}  // namespace

RandomGraph make_random_graph(std::uint64_t seed, const GraphOptions& options) {
  static const auto any = weighted_makers(false), differentiable = weighted_makers(true),
                    products = weighted_makers(false, kMoreProducts);
  Grower grower(seed, options);
  const auto& makers = options.products ? products : options.smooth ? differentiable : any;
  const auto wanted = static_cast<std::size_t>(grower.between(3, 15));
  while (grower.node_count() < wanted) grower.one_of(makers).add(grower);
  return grower.finish();
}

ValueId add_loss(Graph& graph, double scale) {
  RandomStream random(5, 0);
  const Formula f(graph);
  ValueId loss;
  const auto outputs = graph.outputs();
  for (const auto& output : outputs) {
    const auto spec = graph.spec(output.value);
    if (spec.dtype != DType::F32) continue;
    Tensor weights(spec);
    for (auto& weight : weights.as<float>()) {
      weight = random.uniform(-1, 1) * static_cast<float>(scale);
    }
    const auto sum = f.sum(f.mul(output.value, graph.constant(std::move(weights))), {}, false);
    loss = loss.valid() ? f.add(loss, sum) : sum;
  }
  return loss;
}

std::vector<ValueId> differentiable_leaves(const Graph& graph) {
  std::vector<bool> updated(graph.values().size(), false);
  for (const auto& node : graph.nodes()) {
    for (const auto& update : node.updates()) updated[update.before.index()] = true;
  }
  std::vector<ValueId> leaves;
  for (const auto& value : graph.values()) {
    const bool is_leaf = value.kind == ValueKind::Input || value.kind == ValueKind::State;
    if (is_leaf && value.spec.dtype == DType::F32 && !updated[value.id.index()]) {
      leaves.push_back(value.id);
    }
  }
  return leaves;
}

RandomGraph make_training_graph(std::uint64_t seed) {
  auto forward = make_random_graph(seed, {.smooth = true});
  RandomGraph test{forward.graph.clone(), forward.inputs};
  // The bounds of some gradients hold for dy up to 1. Gradients grow in step with the loss.
  const auto loss = add_loss(test.graph, 1.0 / 64);
  if (!loss.valid()) return forward;
  const auto gradients = add_gradients(test.graph, loss, differentiable_leaves(test.graph));
  const auto values = evaluate_reference(test.graph, test.inputs);
  for (const auto gradient : gradients) {
    for (const auto value : values[gradient.index()].values) {
      if (std::fabs(value) > 1) return forward;
    }
    test.graph.mark_output(fmt::format("g{}", test.graph.outputs().size()), gradient);
  }
  return test;
}

RandomGraph shrink(RandomGraph failing, const Check& check) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (auto i = failing.graph.nodes().size() + failing.graph.outputs().size(); i-- > 0;) {
      auto candidate = without(failing, i, check);
      if (!candidate) continue;
      failing = std::move(*candidate);
      smaller = true;
      i = std::min(i, failing.graph.nodes().size() + failing.graph.outputs().size());
    }
  }
  return failing;
}

}  // namespace triptych::conformance
