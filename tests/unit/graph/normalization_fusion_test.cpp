// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>

#include "core/graph/passes/passes.h"
#include "core/ops/assign.h"
#include "tests/unit/graph/training_graph.h"

namespace triptych::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Graph fused_normalization(const Graph& graph) {
  return fuse_normalization(graph, [](const Node&) { return true; });
}

/// Nodes that run this operator, by the value of their attribute `activation`.
template <class Norm>
std::ptrdiff_t count(const Graph& graph, const std::string& activation) {
  return std::ranges::count_if(graph.nodes(), [&](const Node& node) {
    const auto* norm = op_cast<Norm>(*node.op);
    return norm != nullptr && norm->activation == activation;
  });
}

std::ptrdiff_t count_nodes(const Graph& graph, std::string_view op) {
  return std::ranges::count_if(graph.nodes(),
                               [&](const Node& node) { return node.op->name() == op; });
}

TEST(FuseNormalization, takes_the_relu_forward_and_backward) {
  const auto graph = training_graph(3);
  const auto result = fused_normalization(graph);
  EXPECT_EQ(count<BatchNormalization>(result, "relu"), 3);
  EXPECT_EQ(count<BatchNormalizationGradient>(result, "relu"), 3);
  EXPECT_EQ(count_nodes(result, "Relu") + count_nodes(result, "ReluGradient"), 0);
  EXPECT_EQ(result.nodes()[1].name, "layer0.norm+layer0.relu");
  EXPECT_THAT(result.nodes()[1].merged, ElementsAre("layer0.norm", "layer0.relu"));
  expect_same_outputs(graph, result);
}

TEST(FuseNormalization, is_undone_by_the_expansion) {
  const auto graph = training_graph(2);
  const auto expanded = expand_composites(fused_normalization(graph));
  EXPECT_EQ(count_nodes(expanded, "ReluGradient"), 2);
  EXPECT_EQ(count<BatchNormalization>(expanded, "relu"), 0);
  for (const auto& node : expanded.nodes())
    EXPECT_EQ(node.phase == Phase::Backward, node.name.starts_with(kGradientScope)) << node.name;
  expect_same_outputs(graph, expanded);
}

TEST(FuseNormalization, leaves_alone_who_does_not_join) {
  const auto result = fuse_normalization(
      training_graph(2), [](const Node& node) { return node.op->name() != "ReluGradient"; });
  EXPECT_EQ(count<BatchNormalization>(result, "relu"), 2);
  EXPECT_EQ(count<BatchNormalizationGradient>(result, "relu"), 0);
}

TEST(FuseNormalization, keeps_a_value_that_others_read) {
  Graph graph;
  std::vector<ValueId> parameters;
  const auto x = graph.add_input("x", {DType::F32, {2, 3, 4, 4}});
  const auto y = conv_norm_relu_layer(graph, "layer", x, parameters);
  const auto normalized = graph.nodes()[1].outputs[0];
  graph.mark_output("y", y);
  graph.mark_output("normalized", normalized);
  EXPECT_EQ(count<BatchNormalization>(fused_normalization(graph), "relu"), 0);
}

TEST(FuseNormalization, takes_a_gradient_only_behind_its_own_relu) {
  // A graph that has recomputed y reads the Relu of the repetition.
  const auto graph = recompute_activations(training_graph(4), 1);
  const auto result = fused_normalization(graph);
  EXPECT_LT(count<BatchNormalizationGradient>(result, "relu"), 4);
  expect_same_outputs(graph, result);
}

/// Nodes between the forward and the backward ones, and after them, by place.
struct Assigned {
  bool bias_between = false, bias_after = false, dy_between = false;
};

/// BatchNormalization and Relu, their gradients, and states that are assigned to.
Graph assigning_graph(const Assigned& assigned) {
  Graph graph;
  const TensorSpec plane = {DType::F32, {2, 4, 3, 3}}, channels = {DType::F32, {4}};
  const auto x = graph.add_input("x", plane), c = graph.add_input("c", channels);
  const auto dy = graph.add_state("dy", random_tensor(plane, 1));
  const auto scale = graph.add_state("scale", random_tensor(channels, 2, 0.5F));
  auto bias = graph.add_state("bias", random_tensor(channels, 3));
  const auto mean = graph.add_state("mean", random_tensor(channels, 4));
  const auto variance = graph.add_state("var", random_tensor(channels, 5, 0.5F));
  bias = emit(graph, make_op(Assign{}), {bias, c}, "first");  // before all: harms nobody
  BatchNormalization norm;
  norm.training_mode = true;
  const auto z = graph.add_node(make_op(norm), std::vector{x, scale, bias, mean, variance}, "norm");
  const auto y = emit(graph, make_op(Unary(UnaryKind::Relu)), {z[0]}, "relu");
  if (assigned.bias_between) emit(graph, make_op(Assign{}), {bias, scale}, "between");
  const auto dz = emit(graph, make_op(Binary(BinaryKind::ReluGradient)), {dy, y}, "relu.gradient");
  if (assigned.dy_between) emit(graph, make_op(Assign{}), {dy, x}, "between");
  const auto gradients = graph.add_node(make_op(BatchNormalizationGradient{}),
                                        std::vector{x, dz, scale, z[3], z[4]}, "norm.gradient");
  if (assigned.bias_after) emit(graph, make_op(Assign{}), {bias, gradients[2]}, "after");
  graph.mark_output("dx", gradients[0]);
  return graph;
}

TEST(FuseNormalization, reads_a_bias_before_its_update_and_never_after) {
  const auto backward = [](const Assigned& assigned) {
    const auto graph = assigning_graph(assigned);
    const auto result = fused_normalization(graph);
    expect_same_outputs(graph, result);
    return count<BatchNormalizationGradient>(result, "relu");
  };
  EXPECT_EQ(backward({}), 1);
  EXPECT_EQ(backward({.bias_after = true}), 1);
  EXPECT_EQ(backward({.bias_between = true}), 0);
  EXPECT_EQ(backward({.dy_between = true}), 0);
}

TEST(BatchNormalizationActivation, refuses_others_than_relu) {
  BatchNormalization norm;
  norm.activation = "tanh";
  const TensorSpec x = {DType::F32, {1, 2, 3, 3}}, c = {DType::F32, {2}};
  const std::vector<TensorSpec> inputs = {x, c, c, c, c};
  EXPECT_THAT([&] { static_cast<void>(norm.infer(inputs)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("\"relu\"")));
}

}  // namespace
}  // namespace triptych::testing
