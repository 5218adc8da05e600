// SPDX-License-Identifier: Apache-2.0
#include "core/graph/passes/attention_sums.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/autodiff/autodiff.h"
#include "core/ops/attention_gradient.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "tests/unit/graph/example_graphs.h"

namespace triptych::testing {
namespace {

/// Attention of one input several times, and the gradient of the sum of its results.
Graph training(int attentions, std::int64_t length = kFewKeys + 1) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {1, 2, length, 4}});
  auto y = x;
  for (int i = 0; i < attentions; ++i)
    y = emit(graph, make_op(Attention{}), {y, y, y}, "attention");
  graph.mark_output("y", y);
  const auto loss = graph.emit_one(make_op(Reduce(ReduceKind::Sum, {}, false)), {y});
  graph.mark_output("dx", add_gradients(graph, loss, std::array{x}).front());
  return graph;
}

template <class Op>
std::ptrdiff_t count(const Graph& graph) {
  return std::ranges::count_if(graph.nodes(),
                               [](const Node& node) { return op_cast<Op>(*node.op) != nullptr; });
}

TEST(SaveAttentionSums, lets_the_gradient_read_them) {
  const auto graph = training(2);
  EXPECT_EQ(count<AttentionGradient>(graph), 2);
  const auto result = save_attention_sums(graph, [](const Graph&, const Node&) { return true; });
  EXPECT_EQ(count<Attention>(result), 0);
  EXPECT_EQ(count<AttentionWithSums>(result), 2);
  for (const auto& node : result.nodes()) {
    if (op_cast<AttentionGradient>(*node.op) == nullptr) continue;
    ASSERT_EQ(node.inputs.size(), 6U);
    const auto& sums = result.value(node.inputs[AttentionGradient::kSums]);
    EXPECT_EQ(sums.output_index, 1);
    EXPECT_EQ(sums.producer, result.value(node.inputs[3]).producer);
    EXPECT_EQ(node.phase, Phase::Backward);
  }
  expect_same_outputs(graph, result);
}

TEST(SaveAttentionSums, leaves_alone_who_does_not_join) {
  const auto graph = training(2);
  for (const std::string_view apart : {"AttentionWithSums", "AttentionGradient"}) {
    const auto result = save_attention_sums(graph, [&](const Graph& whole, const Node& node) {
      // The second of two pairs joins.
      return node.op->name() != apart || node.inputs[0] != whole.find("x");
    });
    EXPECT_EQ(count<Attention>(result), 1) << apart;
    EXPECT_EQ(count<AttentionWithSums>(result), 1) << apart;
    expect_same_outputs(graph, result);
  }
}

TEST(SaveAttentionSums, expands_pairs_with_few_keys) {
  const auto joins = [](const Graph&, const Node&) { return true; };
  for (const auto length : {kFewKeys, kFewKeys + 1}) {
    const auto graph = training(2, length);
    const auto result = save_attention_sums(graph, joins);
    const auto few = length == kFewKeys ? 2 : 0;
    EXPECT_EQ(count<AttentionWithSums>(result), 2 - few) << length;
    EXPECT_EQ(count<AttentionGradient>(result), 2 - few) << length;
    EXPECT_EQ(count<Softmax>(result), few) << length << ": a gradient reads its attention's";
    EXPECT_EQ(count<Attention>(result), 0) << length;
    expect_same_outputs(graph, result, 1e-12);
  }
}

TEST(SaveAttentionSums, expands_a_pair_with_few_keys_among_others) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {1, 1, kFewKeys + 1, 2}});
  const auto k = graph.add_input("k", {DType::F32, {1, 1, kFewKeys, 2}});
  auto y = emit(graph, make_op(Attention{}), {x, k, k}, "few");
  y = emit(graph, make_op(Attention{}), {y, y, y}, "many");
  graph.mark_output("y", y);
  const auto loss = graph.emit_one(make_op(Reduce(ReduceKind::Sum, {}, false)), {y});
  graph.mark_output("dx", add_gradients(graph, loss, std::array{x}).front());
  const auto result = save_attention_sums(graph, [](const Graph&, const Node&) { return true; });
  EXPECT_EQ(count<AttentionWithSums>(result), 1);
  EXPECT_EQ(count<Softmax>(result), 1);
  expect_same_outputs(graph, result, 1e-12);
}

TEST(SaveAttentionSums, keeps_attention_without_a_gradient_of_its_own) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {1, 2, 5, 4}});
  const auto other = graph.add_input("other", {DType::F32, {1, 2, 5, 4}});
  const auto y = emit(graph, make_op(Attention{}), {x, x, x}, "attention");
  graph.mark_output("y", y);
  // The gradient of another attention.
  graph.mark_output("dq", graph
                              .add_node(make_op(AttentionGradient{}),
                                        std::vector<ValueId>{other, x, x, y, y}, "gradient")
                              .front());
  const auto result = save_attention_sums(graph, [](const Graph&, const Node&) { return true; });
  EXPECT_EQ(count<Attention>(result), 1);
}

}  // namespace
}  // namespace triptych::testing
