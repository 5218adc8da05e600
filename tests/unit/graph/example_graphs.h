// Small graphs and comparisons that the tests of this folder share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/base/random.h"
#include "core/graph/graph.h"
#include "core/graph/reference.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/conv.h"
#include "core/ops/unary.h"

namespace triptych::testing {

inline ValueId emit(Graph& graph, OpPtr op, std::vector<ValueId> inputs, std::string name) {
  return graph.add_node(std::move(op), inputs, name).front();
}

/// Uniform in [low, high). Integers are rounded down.
inline Tensor random_tensor(const TensorSpec& spec, std::uint64_t seed, float low = -1,
                            float high = 1) {
  RandomStream random(seed, 0);
  std::vector<double> values(static_cast<std::size_t>(spec.shape.elements()));
  for (auto& value : values) value = random.uniform(low, high);
  return from_doubles(spec, values);
}

inline OpPtr conv3x3() {
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  return make_op(conv);
}

/// x [2, 3, 6, 6] -> Conv "conv" to 4 channels -> BatchNormalization "norm" -> Relu "relu", output
/// "y". Parameters are states.
inline Graph conv_norm_relu(bool conv_bias) {
  Graph graph;
  const auto state = [&](const std::string& name, Shape shape, std::uint64_t seed, float low) {
    return graph.add_state(name, random_tensor({DType::F32, std::move(shape)}, seed, low));
  };
  const auto x = graph.add_input("x", {DType::F32, {2, 3, 6, 6}});
  std::vector<ValueId> operands = {x, state("conv.weight", {4, 3, 3, 3}, 1, -1)};
  if (conv_bias) operands.push_back(state("conv.bias", {4}, 2, -1));
  const auto z = emit(graph, conv3x3(), operands, "conv");
  const auto n = emit(graph, make_op(BatchNormalization{}),
                      {z, state("norm.scale", {4}, 3, -1), state("norm.bias", {4}, 4, -1),
                       state("norm.mean", {4}, 5, -1), state("norm.var", {4}, 6, 0.1F)},
                      "norm");
  graph.mark_output("y", emit(graph, make_op(Unary(UnaryKind::Relu)), {n}, "relu"));
  return graph;
}

/// The outputs of the graph for inputs drawn by position.
inline std::vector<RefTensor> evaluate_outputs(const Graph& graph) {
  std::unordered_map<ValueId, RefTensor> given;
  std::uint64_t seed = 100;
  for (const auto id : graph.values_of(ValueKind::Input)) {
    given[id] = to_reference(random_tensor(graph.spec(id), ++seed, 0));
  }
  const auto values = evaluate_reference(graph, std::move(given));
  std::vector<RefTensor> outputs;
  for (const auto& output : graph.outputs()) outputs.push_back(values[output.value.index()]);
  return outputs;
}

/// Expects the same outputs by name, values equal within `tolerance` relative to 1 + |value|.
inline void expect_same_outputs(const Graph& before, const Graph& after, double tolerance = 0) {
  verify(after);
  ASSERT_EQ(before.outputs().size(), after.outputs().size());
  const auto expected = evaluate_outputs(before);
  const auto actual = evaluate_outputs(after);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(before.outputs()[i].name, after.outputs()[i].name);
    ASSERT_EQ(expected[i].spec, actual[i].spec);
    for (std::size_t k = 0; k < expected[i].values.size(); ++k) {
      const double wanted = expected[i].values[k];
      ASSERT_NEAR(wanted, actual[i].values[k], tolerance * (1 + std::abs(wanted)))
          << before.outputs()[i].name << " element " << k;
    }
  }
}

/// The names of the operators in order.
inline std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) names.emplace_back(node.op->name());
  return names;
}

}  // namespace triptych::testing
