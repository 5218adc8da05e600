// SPDX-License-Identifier: Apache-2.0
#include "core/graph/passes/passes.h"

#include <gmock/gmock.h>

#include <optional>

#include "core/ops/collectives.h"
#include "core/ops/expand.h"
#include "core/ops/matmul.h"
#include "core/ops/normalization.h"
#include "core/ops/optimizers.h"
#include "core/ops/reshape.h"
#include "tests/unit/graph/example_graphs.h"

namespace triptych::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

/// Folded parameters are rounded to float32 once.
constexpr double kRounded = 1e-5;

OpPtr relu() { return make_op(Unary(UnaryKind::Relu)); }
OpPtr add() { return make_op(Binary(BinaryKind::Add)); }

ValueId constant(Graph& graph, const std::string& name, Shape shape, std::uint64_t seed = 9) {
  return graph.add_constant(
      name, std::make_shared<const Tensor>(random_tensor({DType::F32, std::move(shape)}, seed)));
}

/// x -> Conv [with bias] -> Add of a constant of shape `bias` (none: no Add) -> Relu, output "y".
Graph conv_add_relu(std::optional<Shape> bias, bool conv_bias = false) {
  Graph graph;
  std::vector<ValueId> operands = {graph.add_input("x", {DType::F32, {1, 2, 3, 3}}),
                                   constant(graph, "w", {3, 2, 3, 3}, 1)};
  if (conv_bias) operands.push_back(constant(graph, "b", {3}, 2));
  auto y = emit(graph, conv3x3(), operands, "conv");
  if (bias) y = emit(graph, add(), {y, constant(graph, "bias", *bias)}, "add");
  graph.mark_output("y", emit(graph, relu(), {y}, "relu"));
  return graph;
}

const Conv& only_conv(const Graph& graph) {
  const auto* conv = op_cast<Conv>(*graph.nodes().at(0).op);
  EXPECT_NE(conv, nullptr);
  return *conv;
}

// ------------------------------------------------------------------------------------ composites

Graph normalized(OpPtr op) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2, 4, 3}});
  const auto y = emit(graph, std::move(op),
                      {x, constant(graph, "scale", {4}), constant(graph, "bias", {4}, 8)}, "norm");
  graph.mark_output("y", emit(graph, relu(), {y}, "relu"));
  return graph;
}

TEST(ExpandComposites, leaves_primitives_only) {
  // InstanceNormalization may expand through GroupNormalization: the expansion is recursive.
  const auto graph = normalized(make_op(InstanceNormalization{}));
  const auto expanded = expand_composites(graph);
  for (const auto& node : expanded.nodes()) EXPECT_FALSE(node.op->composite()) << node.name;
  EXPECT_THAT(expanded.nodes().front().name, HasSubstr("norm."));
  EXPECT_EQ(expanded.nodes().back().name, "relu");
  expect_same_outputs(graph, expanded, 1e-12);
}

TEST(ExpandComposites, keeps_what_it_is_told_to_keep) {
  const std::string_view keep[] = {"InstanceNormalization"};
  const auto graph = normalized(make_op(InstanceNormalization{}));
  EXPECT_THAT(op_names(expand_composites(graph, keep)),
              ElementsAre("InstanceNormalization", "Relu"));
}

// ----------------------------------------------------------------------------- constants, dead
// code

TEST(FoldConstants, computes_chains_of_constants) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {3}});
  const auto c = emit(graph, relu(), {constant(graph, "c", {3})}, "c_relu");
  const auto d = emit(graph, add(), {c, c}, "twice");
  graph.mark_output("y", emit(graph, add(), {x, d}, "sum"));
  graph.mark_output("d", d);
  const auto folded = fold_constants(graph);
  EXPECT_THAT(op_names(folded), ElementsAre("Add"));
  EXPECT_EQ(folded.value(folded.find("twice")).kind, ValueKind::Constant);
  expect_same_outputs(graph, folded, kRounded);
}

TEST(FoldConstants, leaves_large_expansions_alone) {
  Graph graph;
  Expand large, small;
  large.shape = {1024, 512};
  small.shape = {16, 16};
  const auto one = constant(graph, "one", {1});
  graph.mark_output("large", emit(graph, make_op(large), {one}, "large"));
  graph.mark_output("small", emit(graph, make_op(small), {one}, "small"));
  EXPECT_THAT(op_names(fold_constants(graph)), ElementsAre("Expand"));
}

TEST(FoldConstants, leaves_large_products_alone) {
  Graph graph;
  const auto add_product = [&](std::int64_t size, const std::string& name) {
    const auto a = constant(graph, name + "_a", {size, size});
    graph.mark_output(name, emit(graph, make_op(MatMul{}), {a, a}, name + "_product"));
  };
  add_product(512, "large");  // 2.7e8 operations
  add_product(8, "small");
  EXPECT_THAT(op_names(fold_constants(graph)), ElementsAre("MatMul"));
}

TEST(FoldConstants, leaves_sums_over_ranks_alone) {
  Graph graph;
  graph.mark_output("y", emit(graph, make_op(AllReduce{}), {constant(graph, "c", {3})}, "sum"));
  EXPECT_THAT(op_names(fold_constants(graph)), ElementsAre("AllReduce"));
}

TEST(EliminateDeadCode, keeps_a_collective_that_nobody_reads) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {3}});
  emit(graph, make_op(AllReduce{}), {emit(graph, relu(), {x}, "term")},
       "sum");  // others wait for it
  graph.mark_output("y", emit(graph, add(), {x, x}, "twice"));
  EXPECT_THAT(op_names(eliminate_dead_code(graph)), ElementsAre("Relu", "AllReduce", "Add"));
}

TEST(EliminateDeadCode, drops_what_nobody_reads) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {3}});
  graph.add_input("unread", {DType::F32, {3}});
  const auto dead = emit(graph, add(), {x, constant(graph, "c", {3})}, "dead");
  emit(graph, relu(), {dead}, "dead_too");
  const auto y = emit(graph, relu(), {x}, "relu");
  graph.mark_output("y", emit(graph, make_op(Identity{}), {y}, "identity"));
  const auto live = eliminate_dead_code(graph);
  EXPECT_THAT(op_names(live), ElementsAre("Relu"));
  EXPECT_FALSE(live.contains("c"));
  EXPECT_TRUE(live.contains("unread"));
  expect_same_outputs(graph, live);
}

TEST(EliminateDeadCode, keeps_updates_of_state) {
  Graph graph;
  const ValueId operands[] = {graph.add_input("rate", {DType::F32, {}}),
                              graph.add_state("step", Tensor({DType::I64, {}})),
                              graph.add_state("w", Tensor({DType::F32, {3}})),
                              emit(graph, relu(), {graph.add_input("g", {DType::F32, {3}})}, "g2")};
  graph.add_node(make_op(SgdUpdate{}), operands);
  EXPECT_THAT(op_names(eliminate_dead_code(graph)), ElementsAre("Relu", "SgdUpdate"));
}

TEST(FreezeStates, makes_constants_of_the_initial_values) {
  const auto graph = conv_norm_relu(true);
  const auto frozen = freeze_states(graph);
  EXPECT_TRUE(frozen.values_of(ValueKind::State).empty());
  EXPECT_EQ(frozen.value(frozen.find("conv.weight")).kind, ValueKind::Constant);
  expect_same_outputs(graph, frozen);
}

TEST(FreezeStates, refuses_a_state_that_is_updated) {
  Graph graph;
  const ValueId operands[] = {
      graph.add_input("rate", {DType::F32, {}}), graph.add_state("step", Tensor({DType::I64, {}})),
      graph.add_state("w", Tensor({DType::F32, {3}})), graph.add_input("g", {DType::F32, {3}})};
  graph.add_node(make_op(SgdUpdate{}), operands, "sgd");
  EXPECT_THAT([&] { freeze_states(graph); },
              ThrowsMessage<InvalidArgument>(HasSubstr("is updated by node \"sgd\"")));
}

// ----------------------------------------------------------------------------------- convolutions

TEST(FoldBatchNormalization, leaves_one_conv) {
  for (const bool conv_bias : {false, true}) {
    const auto graph = freeze_states(conv_norm_relu(conv_bias));
    const auto folded = fold_batch_normalization(graph);
    EXPECT_THAT(op_names(folded), ElementsAre("Conv", "Relu"));
    EXPECT_EQ(folded.nodes()[0].name, "conv");
    EXPECT_EQ(folded.nodes()[0].inputs.size(), 3U);
    expect_same_outputs(graph, folded, kRounded);
  }
}

TEST(FoldBatchNormalization, needs_constant_parameters) {
  EXPECT_THAT(op_names(fold_batch_normalization(conv_norm_relu(false))),
              ElementsAre("Conv", "BatchNormalization", "Relu"));
}

TEST(FoldBatchNormalization, keeps_a_conv_that_others_read) {
  auto output = freeze_states(conv_norm_relu(false));
  output.mark_output("conv", output.find("conv"));
  EXPECT_THAT(op_names(fold_batch_normalization(output)),
              ElementsAre("Conv", "BatchNormalization", "Relu"));
  auto read = freeze_states(conv_norm_relu(false));
  emit(read, relu(), {read.find("conv")}, "reader");
  EXPECT_THAT(op_names(fold_batch_normalization(read)),
              ElementsAre("Conv", "BatchNormalization", "Relu", "Relu"));
}

TEST(FoldBatchNormalization, takes_the_scale_and_the_shift_that_follow) {
  Graph graph;
  auto y =
      emit(graph, conv3x3(),
           {graph.add_input("x", {DType::F32, {1, 2, 3, 3}}), constant(graph, "w", {3, 2, 3, 3})},
           "conv");
  const auto variance = graph.constant(Tensor({3}, std::vector<float>{1, 4, 0.5F}));
  y = emit(graph, make_op(BatchNormalization{}),
           {y, constant(graph, "scale", {3}, 1), constant(graph, "bias", {3}, 2),
            constant(graph, "mean", {3}, 3), variance},
           "norm");
  const auto factor = constant(graph, "factor", {1, 3, 1, 1}, 4);
  y = emit(graph, make_op(Binary(BinaryKind::Mul)), {factor, y}, "mul");
  y = emit(graph, add(), {y, constant(graph, "shift", {3, 1, 1}, 5)}, "add");
  y = emit(graph, add(), {y, constant(graph, "number", {1}, 6)}, "last");
  graph.mark_output("y", y);
  const auto folded = fold_batch_normalization(graph);
  EXPECT_THAT(op_names(folded), ElementsAre("Conv", "Add"));
  expect_same_outputs(graph, folded, kRounded);
}

/// x -> Conv of constants [with relu] -> BatchNormalization, with a scale that is a constant or an
/// input.
Graph conv_norm(bool conv_relu, bool constant_scale) {
  Graph graph;
  auto conv = Conv(*op_cast<Conv>(*conv3x3()));
  if (conv_relu) conv.activation = "relu";
  const auto x = graph.add_input("x", {DType::F32, {1, 2, 3, 3}});
  const auto y = emit(graph, make_op(conv), {x, constant(graph, "w", {3, 2, 3, 3})}, "conv");
  const auto scale = constant_scale ? constant(graph, "scale", {3}, 1)
                                    : graph.add_input("scale", {DType::F32, {3}});
  const auto variance = graph.constant(Tensor({3}, std::vector<float>{1, 4, 0.5F}));
  graph.mark_output("y", emit(graph, make_op(BatchNormalization{}),
                              {y, scale, constant(graph, "bias", {3}, 2),
                               constant(graph, "mean", {3}, 3), variance},
                              "norm"));
  return graph;
}

TEST(FoldBatchNormalization, leaves_an_activation_between_and_a_scale_that_is_an_input) {
  EXPECT_THAT(op_names(fold_batch_normalization(conv_norm(false, true))), ElementsAre("Conv"));
  EXPECT_THAT(op_names(fold_batch_normalization(conv_norm(true, true))),
              ElementsAre("Conv", "BatchNormalization"));
  EXPECT_THAT(op_names(fold_batch_normalization(conv_norm(false, false))),
              ElementsAre("Conv", "BatchNormalization"));
}

TEST(FuseConvEpilogue, leaves_an_addend_that_is_an_input) {
  Graph graph;
  const auto y =
      emit(graph, conv3x3(),
           {graph.add_input("x", {DType::F32, {1, 2, 3, 3}}), constant(graph, "w", {3, 2, 3, 3})},
           "conv");
  const auto addend = graph.add_input("addend", {DType::F32, {3, 1, 1}});
  graph.mark_output("y", emit(graph, add(), {y, addend}, "add"));
  EXPECT_THAT(op_names(fuse_conv_epilogue(graph)), ElementsAre("Conv", "Add"));
}

TEST(FuseConvEpilogue, leaves_an_addend_behind_an_activation) {
  Graph graph;
  auto conv = Conv(*op_cast<Conv>(*conv3x3()));
  conv.activation = "relu";
  const auto y =
      emit(graph, make_op(conv),
           {graph.add_input("x", {DType::F32, {1, 2, 3, 3}}), constant(graph, "w", {3, 2, 3, 3})},
           "conv");
  graph.mark_output("y", emit(graph, add(), {y, constant(graph, "bias", {3, 1, 1})}, "add"));
  EXPECT_THAT(op_names(fuse_conv_epilogue(graph)), ElementsAre("Conv", "Add"));
}

TEST(FuseConvEpilogue, takes_bias_and_relu_into_the_conv) {
  for (const auto& bias : {Shape{1, 3, 1, 1}, Shape{3, 1, 1}}) {
    const auto graph = conv_add_relu(bias);
    const auto fused = fuse_conv_epilogue(graph);
    EXPECT_THAT(op_names(fused), ElementsAre("Conv"));
    EXPECT_EQ(only_conv(fused).activation, "relu");
    EXPECT_EQ(fused.nodes()[0].inputs.size(), 3U);
    expect_same_outputs(graph, fused);
  }
}

TEST(FuseConvEpilogue, takes_relu_alone) {
  for (const bool conv_bias : {false, true}) {
    const auto graph = conv_add_relu({}, conv_bias);
    const auto fused = fuse_conv_epilogue(graph);
    EXPECT_THAT(op_names(fused), ElementsAre("Conv"));
    EXPECT_EQ(only_conv(fused).activation, "relu");
    expect_same_outputs(graph, fused);
  }
}

TEST(FuseConvEpilogue, leaves_an_addend_that_is_not_per_channel) {
  for (const auto& bias : {Shape{3}, Shape{1, 1, 3}, Shape{3, 3, 3}, Shape{1}}) {
    EXPECT_THAT(op_names(fuse_conv_epilogue(conv_add_relu(bias))),
                ElementsAre("Conv", "Add", "Relu"));
  }
}

TEST(FuseConvEpilogue, leaves_an_addend_when_the_conv_has_a_bias) {
  EXPECT_THAT(op_names(fuse_conv_epilogue(conv_add_relu(Shape{3, 1, 1}, true))),
              ElementsAre("Conv", "Add", "Relu"));
}

TEST(FuseConvEpilogue, leaves_values_that_others_read) {
  auto graph = conv_add_relu(Shape{3, 1, 1});
  graph.mark_output("sum", graph.find("add"));
  const auto fused = fuse_conv_epilogue(graph);
  EXPECT_THAT(op_names(fused), ElementsAre("Conv", "Relu"));
  EXPECT_EQ(only_conv(fused).activation, "");
  expect_same_outputs(graph, fused);
}

// --------------------------------------------------------------------------------------- pipeline

TEST(Optimize, makes_one_conv_for_inference) {
  std::vector<PassReport> reports;
  const auto graph = conv_norm_relu(true);
  const auto optimized = optimize(graph.clone(), {.inference = true, .keep_text = true}, &reports);
  EXPECT_THAT(op_names(optimized), ElementsAre("Conv"));
  EXPECT_EQ(optimized.values_of(ValueKind::Constant).size(), 2U);
  expect_same_outputs(graph, optimized, kRounded);
  ASSERT_EQ(reports.size(), 6U);
  EXPECT_EQ(reports[2].name, "fold_batch_normalization");
  EXPECT_EQ(reports[2].nodes_before, 3U);
  EXPECT_EQ(reports[2].nodes_after, 2U);
  EXPECT_THAT(reports[2].text_before, HasSubstr("BatchNormalization"));
  EXPECT_THAT(reports[2].text_after, Not(HasSubstr("BatchNormalization")));
}

TEST(Optimize, leaves_states_alone_for_training) {
  const auto graph = conv_norm_relu(false);
  const auto optimized = optimize(graph.clone(), {});
  EXPECT_THAT(op_names(optimized), ElementsAre("Conv", "BatchNormalization", "Relu"));
  EXPECT_EQ(optimized.values_of(ValueKind::State).size(), 5U);
}

TEST(Passes, keep_names_that_an_inserted_node_would_like) {
  // The expansion of "norm" must not take the name of the later node "norm.sub".
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2, 4, 3}});
  const auto y = emit(graph, make_op(InstanceNormalization{}),
                      {x, constant(graph, "scale", {4}), constant(graph, "bias", {4})}, "norm");
  graph.mark_output("y", emit(graph, relu(), {y}, "norm.sub"));
  const auto expanded = expand_composites(graph);
  EXPECT_EQ(expanded.nodes().back().name, "norm.sub");
  EXPECT_EQ(expanded.nodes().back().op->name(), "Relu");
  verify(expanded);
}

}  // namespace
}  // namespace triptych::testing
