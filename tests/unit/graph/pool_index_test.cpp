// SPDX-License-Identifier: Apache-2.0
#include "core/graph/passes/pool_index.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/ops/binary.h"
#include "core/ops/pool.h"
#include "tests/unit/graph/training_graph.h"

namespace triptych::testing {
namespace {

Graph indexed(const Graph& graph) {
  return index_max_pools(graph, [](const Node&) { return true; });
}

template <class Op>
std::ptrdiff_t count(const Graph& graph) {
  return std::ranges::count_if(graph.nodes(),
                               [](const Node& node) { return op_cast<Op>(*node.op) != nullptr; });
}

/// MaxPool of x by windows of `pooled` x `pooled`, and a MaxPoolGradient of `differentiated` x
/// `differentiated` that reads x.
Graph pooling(std::int64_t pooled, std::int64_t differentiated) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {1, 2, 18, 18}});
  MaxPool pool;
  pool.kernel_shape = {pooled, pooled};
  graph.mark_output("y", emit(graph, make_op(pool), {x}, "pool"));
  MaxPoolGradient gradient;
  gradient.kernel_shape = {differentiated, differentiated};
  const auto side = 19 - differentiated;
  const auto dy = graph.add_input("dy", {DType::F32, {1, 2, side, side}});
  graph.mark_output("dx", emit(graph, make_op(gradient), {x, dy}, "gradient"));
  return graph;
}

TEST(IndexMaxPools, lets_the_gradient_read_an_index) {
  const auto graph = training_graph(2);
  const auto result = indexed(graph);
  EXPECT_EQ(count<MaxPool>(result) + count<MaxPoolGradient>(result), 0);
  ASSERT_EQ(count<MaxPoolWithIndex>(result), 1);
  ASSERT_EQ(count<MaxPoolIndexGradient>(result), 1);
  for (const auto& node : result.nodes()) {
    if (op_cast<MaxPoolIndexGradient>(*node.op) == nullptr) continue;
    EXPECT_EQ(result.spec(node.inputs[0]).dtype, DType::U8);
    EXPECT_EQ(node.phase, Phase::Backward);
  }
  expect_same_outputs(graph, result);
}

TEST(IndexMaxPools, serves_two_gradients_of_one_pooling) {
  auto graph = pooling(2, 2);
  MaxPoolGradient gradient;
  gradient.kernel_shape = {2, 2};
  const std::vector<ValueId> operands = {graph.find("x"), graph.find("dy")};
  graph.mark_output("again", graph.add_node(make_op(gradient), operands).front());
  const auto result = indexed(graph);
  EXPECT_EQ(count<MaxPoolWithIndex>(result), 1);
  EXPECT_EQ(count<MaxPoolIndexGradient>(result), 2);
  expect_same_outputs(graph, result);
}

TEST(IndexMaxPools, leaves_alone_who_does_not_join_and_other_windows) {
  const auto changed = [](const Graph& graph) {
    return count<MaxPoolWithIndex>(indexed(graph)) > 0;
  };
  EXPECT_TRUE(changed(pooling(16, 16)));
  EXPECT_FALSE(changed(pooling(17, 17))) << "an index of a byte numbers 256 taps";
  EXPECT_FALSE(changed(pooling(2, 3)));
  for (const std::string_view apart : {"MaxPool", "MaxPoolGradient"}) {
    const auto result =
        index_max_pools(pooling(2, 2), [&](const Node& node) { return node.op->name() != apart; });
    EXPECT_EQ(count<MaxPoolWithIndex>(result), 0) << apart;
  }
}

TEST(IndexMaxPools, keeps_a_pooling_without_gradient) {
  Graph graph;
  MaxPool pool;
  pool.kernel_shape = {2, 2};
  const auto x = graph.add_input("x", {DType::F32, {1, 2, 6, 6}});
  graph.mark_output("y", emit(graph, make_op(pool), {x}, "pool"));
  EXPECT_EQ(count<MaxPool>(indexed(graph)), 1);
}

/// x, pooled by 2 x 2 windows with an index, and sums of its gradient with others.
struct PooledSums {
  Graph graph;
  ValueId dx, other;

  PooledSums() {
    MaxPoolIndexGradient gradient;
    gradient.kernel_shape = gradient.strides = {2, 2};
    gradient.input_shape = {1, 2, 6, 6};
    const auto index = graph.add_input("index", {DType::U8, {1, 2, 3, 3}});
    const auto dy = graph.add_input("dy", {DType::F32, {1, 2, 3, 3}});
    other = graph.add_input("other", {DType::F32, {1, 2, 6, 6}});
    dx = emit(graph, make_op(gradient), {index, dy}, "gradient");
  }
  ValueId add(ValueId a, ValueId b, const std::string& name) {
    return emit(graph, make_op(Binary(BinaryKind::Add)), {a, b}, name);
  }
  /// Sums that remain.
  std::ptrdiff_t sums(std::string_view apart = "") {
    const auto result =
        add_in_pool_gradients(graph, [&](const Node& node) { return node.op->name() != apart; });
    expect_same_outputs(graph, result);
    return count<Binary>(result);
  }
};

TEST(AddInPoolGradients, adds_the_other_gradient_on_either_side) {
  for (const bool is_first : {false, true}) {
    PooledSums sums;
    const auto sum =
        sums.add(is_first ? sums.dx : sums.other, is_first ? sums.other : sums.dx, "sum");
    sums.graph.mark_output("y", sums.add(sum, sums.other, "again"));
    EXPECT_EQ(sums.sums(), 1);
    EXPECT_EQ(sums.sums("Add"), 2);
    EXPECT_EQ(sums.sums("MaxPoolIndexGradient"), 2);
  }
}

TEST(AddInPoolGradients, keeps_gradients_with_other_readers_and_other_shapes) {
  PooledSums twice;
  twice.graph.mark_output("y", twice.add(twice.dx, twice.other, "sum"));
  twice.graph.mark_output("dx", twice.dx);
  EXPECT_EQ(twice.sums(), 1);
  PooledSums doubled;
  doubled.graph.mark_output("y", doubled.add(doubled.dx, doubled.dx, "sum"));
  EXPECT_EQ(doubled.sums(), 1);
  PooledSums broadcast;
  const auto row = broadcast.graph.add_input("row", {DType::F32, {6}});
  broadcast.graph.mark_output("y", broadcast.add(broadcast.dx, row, "sum"));
  EXPECT_EQ(broadcast.sums(), 1);
}

}  // namespace
}  // namespace triptych::testing
