// A small training step that the tests of this folder share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/autodiff/autodiff.h"
#include "core/ops/optimizers.h"
#include "core/ops/pool.h"
#include "core/ops/reduce.h"
#include "tests/unit/graph/example_graphs.h"

namespace triptych::testing {

inline ValueId conv_norm_relu_layer(Graph& graph, const std::string& name, ValueId x,
                                    std::vector<ValueId>& parameters) {
  const auto scope = graph.scope(name);
  const auto state = [&](const std::string& what, Shape shape, float low) {
    return graph.add_state(what, random_tensor({DType::F32, std::move(shape)}, 7, low));
  };
  const auto channels = graph.spec(x).shape[1];
  const auto weight = state("weight", {4, channels, 3, 3}, -1);
  const auto scale = state("scale", {4}, 0.5F), bias = state("bias", {4}, -1);
  const auto mean = state("mean", {4}, -1), variance = state("var", {4}, 0.5F);
  parameters.insert(parameters.end(), {weight, scale, bias});
  BatchNormalization norm;
  norm.training_mode = true;
  const auto z = emit(graph, conv3x3(), {x, weight}, "conv");
  const auto n = emit(graph, make_op(norm), {z, scale, bias, mean, variance}, "norm");
  return emit(graph, make_op(Unary(UnaryKind::Relu)), {n}, "relu");
}

/// A training step of `layers` layers of Conv, BatchNormalization and Relu, with one MaxPool. The
/// loss and the updated parameters are outputs.
inline Graph training_graph(int layers) {
  Graph graph;
  std::vector<ValueId> operands = {graph.add_input("rate", {DType::F32, {}}),
                                   graph.add_state("step", Tensor({DType::I64, {}}))};
  std::vector<ValueId> parameters;
  auto y = graph.add_input("x", {DType::F32, {2, 3, 8, 8}});
  for (int i = 0; i < layers; ++i) {
    y = conv_norm_relu_layer(graph, "layer" + std::to_string(i), y, parameters);
    if (i > 0) continue;
    MaxPool pool;
    pool.kernel_shape = {3, 3};
    pool.pads = {1, 1, 1, 1};
    y = emit(graph, make_op(pool), {y}, "pool");
  }
  const auto loss = emit(graph, make_op(Reduce(ReduceKind::Mean, {}, false)),
                         {emit(graph, make_op(Unary(UnaryKind::Sigmoid)), {y}, "sigmoid")}, "loss");
  const auto gradients = add_gradients(graph, loss, parameters);
  operands.insert(operands.end(), parameters.begin(), parameters.end());
  operands.insert(operands.end(), gradients.begin(), gradients.end());
  const auto updated = graph.add_node(make_op(SgdUpdate{}), operands, "sgd");
  graph.mark_output("loss", loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    graph.mark_output(graph.value(parameters[i]).name, updated[i + 1]);
  }
  return graph;
}

}  // namespace triptych::testing
