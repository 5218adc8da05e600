// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "core/autodiff/autodiff.h"
#include "core/graph/passes/passes.h"
#include "core/ops/dropout.h"
#include "core/ops/optimizers.h"
#include "core/ops/pool.h"
#include "core/ops/reduce.h"
#include "core/ops/reshape.h"
#include "tests/unit/graph/training_graph.h"

namespace triptych::testing {
namespace {

TEST(PeakActivationBytes, counts_what_is_alive_together) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {10}});
  const auto w = graph.add_state("w", Tensor({DType::F32, {1000}}));
  const auto a = emit(graph, make_op(Unary(UnaryKind::Relu)), {x}, "a");
  const auto b = emit(graph, make_op(Unary(UnaryKind::Neg)), {a}, "b");
  emit(graph, make_op(Unary(UnaryKind::Neg)), {w}, "unread");
  graph.mark_output("b", b);
  // At "unread": its 4000 bytes and b's 40. x and a are free, w is no activation.
  EXPECT_EQ(peak_activation_bytes(graph), 4040U);
}

TEST(PeakActivationBytes, counts_views_once) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {10}});
  const auto a = emit(graph, make_op(Unary(UnaryKind::Relu)), {x}, "a");
  const auto view = emit(graph, make_op(Identity{}), {a}, "view");
  graph.mark_output("a", a);
  graph.mark_output("view", view);
  graph.mark_output("y", emit(graph, make_op(Unary(UnaryKind::Neg)), {view}, "y"));
  EXPECT_EQ(peak_activation_bytes(graph), 80U);
}

TEST(PeakActivationBytes, counts_updates_as_nothing) {
  Graph graph;
  const ValueId operands[] = {
      graph.add_input("rate", {DType::F32, {}}), graph.add_state("step", Tensor({DType::I64, {}})),
      graph.add_state("w", Tensor({DType::F32, {10}})), graph.add_input("g", {DType::F32, {10}})};
  graph.mark_output("w", graph.add_node(make_op(SgdUpdate{}), operands)[1]);
  EXPECT_EQ(peak_activation_bytes(graph), 44U);
}

TEST(RecomputeActivations, lowers_the_peak_and_keeps_the_outputs) {
  const auto graph = training_graph(4);
  verify(graph);
  const auto recomputed = recompute_activations(graph, 1);
  EXPECT_LT(peak_activation_bytes(recomputed), peak_activation_bytes(graph));
  EXPECT_GT(recomputed.nodes().size(), graph.nodes().size());
  expect_same_outputs(graph, recomputed);
}

TEST(RecomputeActivations, stops_at_the_limit) {
  const auto graph = training_graph(4);
  const auto peak = peak_activation_bytes(graph);
  const auto least = peak_activation_bytes(recompute_activations(graph, 1));
  const auto limit = (peak + least) / 2;
  const auto recomputed = recompute_activations(graph, limit);
  EXPECT_LE(peak_activation_bytes(recomputed), limit);
  EXPECT_LT(recomputed.nodes().size(), recompute_activations(graph, 1).nodes().size());
}

TEST(RecomputeActivations, changes_nothing_below_the_limit) {
  const auto graph = training_graph(2);
  const auto same = recompute_activations(graph, peak_activation_bytes(graph));
  EXPECT_EQ(to_text(same), to_text(graph));
}

TEST(RecomputeActivations, updates_each_state_once) {
  const auto recomputed = recompute_activations(training_graph(4), 1);
  const auto names = op_names(recomputed);
  const auto updates_state = [](const Node& node) { return !node.updates().empty(); };
  EXPECT_EQ(std::ranges::count_if(recomputed.nodes(), updates_state), 4 + 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "Conv"), 4);
  EXPECT_EQ(std::count(names.begin(), names.end(), "SgdUpdate"), 1);
}

/// x -> op "wide" -> narrow sum, then a chain over a large value, then "wide" is read again.
Graph late_reader(const std::function<ValueId(Graph&, ValueId)>& wide, bool update_between) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {100}});
  const auto w = graph.add_state("w", random_tensor({DType::F32, {100}}, 3));
  const auto value = wide(graph, emit(graph, make_op(Binary(BinaryKind::Add)), {x, w}, "sum"));
  const auto total = emit(graph, make_op(Reduce(ReduceKind::Sum, {}, true)), {value}, "total");
  if (update_between) {
    const ValueId operands[] = {graph.add_input("rate", {DType::F32, {}}),
                                graph.add_state("step", Tensor({DType::I64, {}})), w, x};
    graph.add_node(make_op(SgdUpdate{}), operands, "sgd");
  }
  const auto seed = graph.add_input("seed", {DType::F32, {300, 1}});
  const auto large = emit(graph, make_op(Binary(BinaryKind::Mul)), {seed, total}, "large");
  const auto narrow = emit(graph, make_op(Reduce(ReduceKind::Sum, {}, true)), {large}, "narrow");
  const auto last = emit(graph, make_op(Binary(BinaryKind::Mul)), {value, narrow}, "last");
  graph.mark_output("y", emit(graph, make_op(Binary(BinaryKind::Add)), {last, x}, "end"));
  return graph;
}

ValueId relu_of(Graph& graph, ValueId x) {
  return emit(graph, make_op(Unary(UnaryKind::Relu)), {x}, "wide");
}

TEST(RecomputeActivations, repeats_a_chain_of_cheap_nodes) {
  const auto graph = late_reader(relu_of, false);
  const auto recomputed = recompute_activations(graph, 1);
  EXPECT_TRUE(recomputed.contains("sum.again"));
  EXPECT_TRUE(recomputed.contains("wide.again"));
  expect_same_outputs(graph, recomputed);
}

TEST(RecomputeActivations, does_not_repeat_what_reads_an_overwritten_state) {
  const auto graph = late_reader(relu_of, true);
  EXPECT_EQ(to_text(recompute_activations(graph, 1)), to_text(graph));
}

TEST(RecomputeActivations, does_not_repeat_random_nodes) {
  const auto dropout = [](Graph& graph, ValueId x) {
    Dropout op;
    op.training_mode = true;
    return emit(graph, make_op(op), {x, graph.add_input("step", {DType::I64, {}})}, "wide");
  };
  const auto graph = late_reader(dropout, false);
  EXPECT_EQ(to_text(recompute_activations(graph, 1)), to_text(graph));
}

}  // namespace
}  // namespace triptych::testing
