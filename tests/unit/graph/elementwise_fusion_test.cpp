// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/graph/passes/passes.h"
#include "core/ops/fused_elementwise.h"
#include "core/ops/optimizers.h"
#include "tests/unit/graph/example_graphs.h"

namespace triptych::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

OpPtr unary(UnaryKind kind) { return make_op(Unary(kind)); }
OpPtr binary(BinaryKind kind) { return make_op(Binary(kind)); }

Graph fused_elementwise(const Graph& graph) {
  Graph result = fuse_elementwise(graph, [](const Node&) { return true; });
  verify(result);
  return result;
}

/// The chains of a graph, in order.
std::vector<std::string> chains(const Graph& graph) {
  std::vector<std::string> list;
  for (const auto& node : graph.nodes()) {
    if (const auto* op = op_cast<FusedElementwise>(*node.op)) list.push_back(op->steps);
  }
  return list;
}

/// y = relu(x + b) * exp(z) - x.
Graph example() {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2, 3}});
  const auto b = graph.add_input("b", {DType::F32, {3}});
  const auto z = graph.add_input("z", {DType::F32, {2, 3}});
  auto y = emit(graph, binary(BinaryKind::Add), {x, b}, "add");
  y = emit(graph, unary(UnaryKind::Relu), {y}, "relu");
  const auto e = emit(graph, unary(UnaryKind::Exp), {z}, "exp");
  y = emit(graph, binary(BinaryKind::Mul), {y, e}, "mul");
  graph.mark_output("y", emit(graph, binary(BinaryKind::Sub), {y, x}, "sub"));
  return graph;
}

TEST(FuseElementwise, makes_one_node_of_a_chain_under_the_names_of_all) {
  const auto graph = fused_elementwise(example());
  ASSERT_EQ(graph.nodes().size(), 2U);
  EXPECT_EQ(graph.nodes()[1].name, "add+relu+mul+sub");
  EXPECT_THAT(graph.nodes()[1].stands_for(), ElementsAre("add", "relu", "mul", "sub"));
  EXPECT_THAT(graph.nodes()[0].stands_for(), ElementsAre("exp"));
  EXPECT_THAT(chains(graph), ElementsAre("Add(., 1); Relu(.); Mul(., 2); Sub(., 3)"));
  expect_same_outputs(example(), graph, 0);
}

TEST(FuseElementwise, leaves_alone_who_does_not_join) {
  const auto graph =
      fuse_elementwise(example(), [](const Node& node) { return node.op->name() != "Relu"; });
  EXPECT_THAT(chains(graph), ElementsAre("Exp(.); Mul(1, .); Sub(., 2)"));
}

TEST(FuseElementwise, keeps_what_others_read) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {4}});
  const auto y = emit(graph, unary(UnaryKind::Exp), {x}, "exp");
  const auto z = emit(graph, unary(UnaryKind::Neg), {y}, "neg");
  graph.mark_output("y", y);
  graph.mark_output("z", z);
  EXPECT_THAT(chains(fused_elementwise(graph)), ElementsAre());
}

TEST(FuseElementwise, keeps_attributes) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {3, 5}});
  Unary clip(UnaryKind::Clip), steep(UnaryKind::LeakyRelu), elu(UnaryKind::Elu);
  clip.min = -1.0F / 3;
  steep.alpha = 0.5F;
  elu.alpha = 2;
  auto y = emit(graph, make_op(clip), {x}, "clip");
  y = emit(graph, make_op(steep), {y}, "steep");
  y = emit(graph, make_op(elu), {y}, "elu");
  y = emit(graph, unary(UnaryKind::Elu), {y}, "plain_elu");
  graph.mark_output("y", emit(graph, binary(BinaryKind::Mul), {y, x}, "mul"));
  const auto fused = fused_elementwise(graph);
  EXPECT_THAT(chains(fused), ElementsAre("Clip(., min=-0.33333334); LeakyRelu(., alpha=0.5); "
                                         "Elu(., alpha=2); Elu(.); Mul(., 1)"));
  expect_same_outputs(graph, fused, 0);
}

TEST(FuseElementwise, keeps_other_types_shapes_and_approximations) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {3}});
  const auto wide = graph.add_input("wide", {DType::F32, {2, 3}});
  const auto half = graph.add_input("half", {DType::BF16, {3}});
  Unary gelu(UnaryKind::Gelu);
  gelu.approximate = "tanh";
  auto y = emit(graph, unary(UnaryKind::Exp), {x}, "exp");
  y = emit(graph, binary(BinaryKind::Add), {y, wide}, "grows");
  graph.mark_output("y", emit(graph, make_op(gelu), {y}, "gelu"));
  const auto h = emit(graph, unary(UnaryKind::Exp), {half}, "half_exp");
  graph.mark_output("h", emit(graph, unary(UnaryKind::Neg), {h}, "half_neg"));
  EXPECT_THAT(chains(fused_elementwise(graph)), ElementsAre());
}

TEST(FuseElementwise, never_reads_a_state_after_its_update) {
  Graph graph;
  const auto rate = graph.add_input("rate", {DType::F32, {}});
  const auto step = graph.add_state("step", Tensor({DType::I64, {}}));
  const auto w = graph.add_state("w", Tensor({DType::F32, {3}}));
  const auto g = graph.add_input("g", {DType::F32, {3}});
  const auto old = emit(graph, unary(UnaryKind::Exp), {w}, "old");
  graph.add_node(make_op(SgdUpdate{}), std::vector<ValueId>{rate, step, w, g}, "update");
  graph.mark_output("y", emit(graph, unary(UnaryKind::Neg), {old}, "neg"));
  EXPECT_THAT(chains(fused_elementwise(graph)), ElementsAre());
}

TEST(FuseElementwise, splits_what_is_too_long_or_reads_too_much) {
  Graph graph;
  auto y = graph.add_input("x", {DType::F32, {4}});
  for (int i = 0; i < 10; ++i) {
    y = emit(graph, unary(UnaryKind::Tanh), {y}, std::string("tanh").append(std::to_string(i)));
  }
  for (int i = 0; i < 7; ++i) {
    const auto other =
        graph.add_input(std::string("x").append(std::to_string(i)), {DType::F32, {4}});
    y = emit(graph, binary(BinaryKind::Add), {y, other},
             std::string("add").append(std::to_string(i)));
  }
  graph.mark_output("y", y);
  const auto lists = chains(fused_elementwise(graph));
  ASSERT_EQ(lists.size(), 3U);
  EXPECT_THAT(lists[1], HasSubstr("Add(., 5)"));
  EXPECT_EQ(lists[2], "Add(., 1); Add(., 2)");
}

TEST(FusedElementwise, refuses_what_is_no_chain) {
  const TensorSpec x = {DType::F32, {3}};
  const auto infer = [&](const std::string& steps, std::size_t inputs) {
    FusedElementwise op;
    op.steps = steps;
    return [op, specs = std::vector<TensorSpec>(inputs, x)] { op.infer(specs); };
  };
  const auto says = [](const char* text) {
    return ThrowsMessage<InvalidArgument>(HasSubstr(text));
  };
  EXPECT_THAT(infer("", 1), says("takes 1 to 8 steps, got 0"));
  EXPECT_THAT(infer("Relu", 1), says("is no NAME(operands)"));
  EXPECT_THAT(infer("Fly(.)", 1), says("no elementwise operator"));
  EXPECT_THAT(infer("Equal(., 1)", 2), says("no elementwise operator"));
  EXPECT_THAT(infer("Add(., 2)", 2), says("there is no input 2"));
  EXPECT_THAT(infer("Add(., x)", 2), says("is no operand"));
  EXPECT_THAT(infer("Add(1, 1)", 2), says("leaves out what came before it"));
  EXPECT_THAT(infer("Add(., 1x)", 2), says("is no operand"));
  EXPECT_THAT(infer("Add(., 0)", 2), says("there is no input 0"));
  EXPECT_THAT(infer("Add(.)", 2), says("takes two operands"));
  EXPECT_THAT(infer("Relu(.", 1), says("is no NAME(operands)"));
  EXPECT_THAT(infer("Relu(1)", 2), says("takes what came before it"));
  EXPECT_THAT(infer("Relu(.1)", 2), says("takes what came before it"));
  EXPECT_THAT(infer("Clip(., min)", 1), says("\"min\" is no NAME=NUMBER"));
  EXPECT_THAT(infer("Clip(., min=1x)", 1), says("\"min=1x\" is no NAME=NUMBER"));
  EXPECT_THAT(infer("Clip(., least=1)", 1), says("least"));
  EXPECT_THAT(
      infer("Relu(.); Relu(.); Relu(.); Relu(.); Relu(.); Relu(.); Relu(.); Relu(.); Relu(.)", 1),
      says("takes 1 to 8 steps, got 9"));
  EXPECT_THAT(infer("Relu(.)", 2), says("no step reads input 1"));
}

}  // namespace
}  // namespace triptych::testing
