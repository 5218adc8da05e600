// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/ops/dropout.h"
#include "tests/unit/graph/example_graphs.h"

namespace triptych::testing {
namespace {

using ::testing::HasSubstr;

Graph printable_graph() {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2, 3}});
  const auto w = graph.add_state("w", Tensor({DType::F32, {2, 3}}));
  const auto scope = graph.scope("layer");
  const auto half = graph.add_constant("half", std::make_shared<const Tensor>(scalar_tensor(0.5F)));
  const auto sum = emit(graph, make_op(Binary(BinaryKind::Add)), {x, w}, "sum");
  const auto scaled = emit(graph, make_op(Binary(BinaryKind::Mul)), {sum, half}, "scaled");
  Unary leaky(UnaryKind::LeakyRelu);
  leaky.alpha = 0.25F;
  graph.mark_output("y", emit(graph, make_op(leaky), {scaled}, "leaky"));
  return graph;
}

TEST(Printer, lists_leaves_nodes_and_outputs) {
  EXPECT_EQ(to_text(printable_graph()),
            "input %x: f32[2, 3]\n"
            "state %w: f32[2, 3]\n"
            "constant %layer.half: f32[] = [0.5]\n"
            "%layer.sum: f32[2, 3] = Add %x, %w  # layer.sum\n"
            "%layer.scaled: f32[2, 3] = Mul %layer.sum, %layer.half  # layer.scaled\n"
            "%layer.leaky: f32[2, 3] = LeakyRelu(alpha=0.25) %layer.scaled  # layer.leaky\n"
            "output y = %layer.leaky\n");
}

TEST(Printer, lists_every_output_of_a_node) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {4}});
  emit(graph, make_op(Dropout{}), {x}, "drop");
  EXPECT_THAT(to_text(graph), HasSubstr("%drop: f32[4], %drop:1: bool[4] = Dropout("));
}

TEST(Printer, draws_each_kind_of_value_in_its_own_shape) {
  const auto dot = to_dot(printable_graph());
  EXPECT_THAT(dot, HasSubstr("v0 [label=\"x\", shape=ellipse, fillcolor=lightblue];"));
  EXPECT_THAT(dot, HasSubstr("v1 [label=\"w\", shape=cylinder, fillcolor=khaki];"));
  EXPECT_THAT(dot, HasSubstr("v2 [label=\"layer.half\", shape=note, fillcolor=lightgrey];"));
  EXPECT_THAT(dot, HasSubstr("n0 [label=\"Add\\nlayer.sum\"];"));
  EXPECT_THAT(dot, HasSubstr("v0 -> n0 [label=\"f32[2, 3]\"];"));
  EXPECT_THAT(dot, HasSubstr("n0 -> n1 [label=\"f32[2, 3]\"];"));
  EXPECT_THAT(dot, HasSubstr("n2 -> o0 [label=\"f32[2, 3]\"];"));
}

TEST(Printer, escapes_names_in_dot) {
  Graph graph;
  graph.add_input("a\"b\\c", {DType::F32, {1}});
  EXPECT_THAT(to_dot(graph), HasSubstr("label=\"a\\\"b\\\\c\""));
}

}  // namespace
}  // namespace triptych::testing
