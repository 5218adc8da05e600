// SPDX-License-Identifier: Apache-2.0
#include "core/autodiff/autodiff.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <cmath>

#include "core/graph/reference.h"
#include "core/ops/binary.h"
#include "core/ops/expand.h"
#include "core/ops/pool.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace triptych {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ValueId sum_of(Graph& graph, ValueId x) {
  return graph.emit_one(make_op(Reduce(ReduceKind::Sum, {}, false)), {x});
}

std::vector<double> evaluate(const Graph& graph, ValueId x, std::vector<double> data, ValueId at) {
  std::unordered_map<ValueId, RefTensor> given;
  given[x] = {graph.spec(x), std::move(data)};
  return evaluate_reference(graph, std::move(given))[at.index()].values;
}

TEST(Autodiff, adds_what_flows_back_along_every_path) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2}});
  const auto square = graph.emit_one(make_op(Binary(BinaryKind::Mul)), {x, x});
  const auto both = graph.emit_one(make_op(Binary(BinaryKind::Add)), {square, x});
  const auto gradient = add_gradients(graph, sum_of(graph, both), std::array{x}).front();
  verify(graph);
  EXPECT_THAT(evaluate(graph, x, {3, -1}, gradient), ElementsAre(7, -1));
}

/// d sum(f(x)) / dx. Numbers far beyond those of float32 take the place of its infinities here.
template <class Op>
std::vector<double> slopes(const Op& op, std::vector<double> x) {
  Graph graph;
  const auto in = graph.add_input("x", {DType::F32, {static_cast<std::int64_t>(x.size())}});
  const auto y = graph.emit_one(make_op(op), {in});
  const auto gradient = add_gradients(graph, sum_of(graph, y), std::array{in}).front();
  return evaluate(graph, in, std::move(x), gradient);
}

TEST(Autodiff, activations_have_their_slopes_far_from_zero) {
  const auto near = [](double value) { return testing::DoubleNear(value, 1e-6); };
  EXPECT_THAT(slopes(Unary(UnaryKind::Elu), {1e4, -1e4, 0, -1e-9}), ElementsAre(1, 0, 1, near(1)));
  EXPECT_THAT(slopes(Unary(UnaryKind::Softplus), {1e4, -1e4, 0}), ElementsAre(1, 0, 0.5));
  EXPECT_THAT(slopes(Unary(UnaryKind::Softsign), {1e200, -1, 0}), ElementsAre(0, 0.25, 1));
  Unary gelu(UnaryKind::Gelu);
  gelu.approximate = "tanh";
  EXPECT_THAT(slopes(gelu, {1e200, -1e200, 0}), ElementsAre(1, 0, 0.5));
}

TEST(Autodiff, a_power_has_slopes_where_its_base_or_exponent_is_zero) {
  Graph graph;
  const auto a = graph.add_input("a", {DType::F32, {4}});
  const auto b = graph.add_constant(
      "b", std::make_shared<const Tensor>(Shape{4}, std::vector<float>{0, 2, 1, 0}));
  const auto y = graph.emit_one(make_op(Binary(BinaryKind::Pow)), {a, b});
  const auto slopes = add_gradients(graph, sum_of(graph, y), std::array{a, b});
  const std::vector<double> bases = {0, 0, 0, 3};
  EXPECT_THAT(evaluate(graph, a, bases, slopes[0]), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(evaluate(graph, a, bases, slopes[1]), ElementsAre(0, 0, 0, std::log(3.0)));
}

TEST(Autodiff, gives_zeros_where_the_loss_does_not_depend) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2}});
  const auto other = graph.add_state("other", Tensor({DType::F32, {3}}));
  const auto gradient = add_gradients(graph, sum_of(graph, x), std::array{other}).front();
  EXPECT_THAT(evaluate(graph, x, {3, -1}, gradient), ElementsAre(0, 0, 0));
}

TEST(Autodiff, names_a_node_without_a_gradient) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {1, 1, 2, 2}});
  MaxPoolGradient op;
  op.kernel_shape = {1, 1};
  const auto y = graph.add_node(make_op(op), std::array{x, x}, "pooled").front();
  const auto loss = sum_of(graph, y);
  try {
    add_gradients(graph, loss, std::array{x});
    FAIL() << "accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("[MaxPoolGradient] has no gradient (node \"pooled\")"));
  }
}

// A rule that keeps a reference into the graph loses it when the list of values grows.
TEST(Autodiff, survives_a_growing_graph_at_any_size) {
  for (int values = 0; values < 70; ++values) {
    Graph graph;
    const auto x = graph.add_input("x", {DType::F32, {2, 1}});
    for (int i = 0; i < values; ++i) graph.add_input(fmt::format("unread{}", i), {DType::F32, {}});
    Expand expand;
    expand.shape = {4, 2, 3};
    const auto y = graph.emit_one(make_op(expand), {x});
    const auto gradient = add_gradients(graph, sum_of(graph, y), std::array{x}).front();
    EXPECT_EQ(graph.spec(gradient).shape, (Shape{2, 1})) << values << " values";
  }
}

}  // namespace
}  // namespace triptych
