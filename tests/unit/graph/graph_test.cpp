// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/ops/dropout.h"
#include "tests/unit/graph/example_graphs.h"

namespace triptych::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Graph, names_of_nodes_are_scoped_and_made_unique) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2}});
  {
    const auto scope = graph.scope("down1");
    emit(graph, make_op(Unary(UnaryKind::Relu)), {x}, "");
    emit(graph, make_op(Unary(UnaryKind::Relu)), {x}, "");
  }
  EXPECT_EQ(graph.nodes()[0].name, "down1.relu");
  EXPECT_EQ(graph.nodes()[1].name, "down1.relu_1");
  EXPECT_TRUE(graph.contains("down1.relu_1"));
}

TEST(Graph, refuses_a_second_value_of_a_name) {
  Graph graph;
  graph.add_input("x", {DType::F32, {2}});
  EXPECT_THAT(
      [&] {
        graph.add_input("x", {DType::F32, {3}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("already has a value \"x\"")));
}

TEST(Graph, names_the_node_whose_shapes_do_not_fit) {
  Graph graph;
  const auto a = graph.add_input("a", {DType::F32, {2}});
  const auto b = graph.add_input("b", {DType::F32, {3}});
  EXPECT_THAT(
      [&] {
        emit(graph, make_op(Binary(BinaryKind::Add)), {a, b}, "sum");
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("(node \"sum\")")));
}

TEST(Graph, names_the_node_that_reads_an_unknown_value) {
  Graph graph;
  EXPECT_THAT([&] { emit(graph, make_op(Unary(UnaryKind::Relu)), {ValueId{7}}, "relu"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("no value number 7 (node \"relu\")")));
}

TEST(Graph, lists_each_reader_of_a_value_once) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2}});
  const auto y = emit(graph, make_op(Binary(BinaryKind::Mul)), {x, x}, "square");
  emit(graph, make_op(Binary(BinaryKind::Add)), {x, y}, "sum");
  const auto readers = graph.consumers();
  EXPECT_THAT(readers[x.index()], ElementsAre(NodeId{0}, NodeId{1}));
  EXPECT_THAT(readers[y.index()], ElementsAre(NodeId{1}));
}

TEST(Graph, suggests_near_names) {
  const auto graph = conv_norm_relu(false);
  EXPECT_THAT([&] { graph.find("weight"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("conv.weight")));
}

TEST(Reference, evaluates_every_value) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {3}});
  const auto y = emit(graph, make_op(Unary(UnaryKind::Relu)), {x}, "relu");
  const auto z = emit(graph, make_op(Binary(BinaryKind::Add)), {x, y}, "sum");
  const auto values = evaluate_reference(graph, {{x, {graph.spec(x), {-1, 0, 2}}}});
  EXPECT_THAT(values[z.index()].values, ElementsAre(-1, 0, 4));
}

struct Unknowable : OpOf<Unknowable> {
  static constexpr std::string_view kName = "Unknowable";
  static constexpr std::string_view kSummary = "cannot be evaluated";
  static void visit(auto&, auto&) {}
  std::vector<TensorSpec> infer(Specs inputs) const override { return {inputs[0]}; }
  void reference(std::span<const RefTensor>, std::span<RefTensor>) const override {
    throw InvalidArgument("evaluated");
  }
};

TEST(Reference, does_not_evaluate_a_node_whose_outputs_are_given) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2}});
  const auto y = emit(graph, make_op(Unknowable{}), {x}, "y");
  const auto z = emit(graph, make_op(Unary(UnaryKind::Neg)), {y}, "neg");
  const auto values =
      evaluate_reference(graph, {{x, {graph.spec(x), {1, 2}}}, {y, {graph.spec(y), {5, 6}}}});
  EXPECT_THAT(values[z.index()].values, ElementsAre(-5, -6));
}

TEST(Reference, keeps_the_outputs_that_are_given) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2}});
  const ValueId operands[] = {x};
  const auto keep = graph.add_node(make_op(Dropout{}), operands)[1];
  const auto values =
      evaluate_reference(graph, {{x, {graph.spec(x), {1, 2}}}, {keep, {graph.spec(keep), {0, 1}}}});
  EXPECT_THAT(values[keep.index()].values, ElementsAre(0, 1));
}

TEST(Reference, names_the_missing_input) {
  const auto graph = conv_norm_relu(false);
  EXPECT_THAT([&] { evaluate_reference(graph, {}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("input \"x\"")));
}

TEST(Reference, refuses_a_given_tensor_of_another_shape) {
  const auto graph = conv_norm_relu(false);
  const TensorSpec wrong{DType::F32, {1}};
  EXPECT_THAT(
      [&] {
        evaluate_reference(graph, {{graph.find("x"), {wrong, {0}}}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("the given tensor is f32[1]")));
}

}  // namespace
}  // namespace triptych::testing
