// All shares of a batch together equal one step of the whole batch, for any loss.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/nn/losses.h"
#include "core/ops/conv.h"
#include "core/ops/dropout.h"
#include "core/ops/formula.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/slice.h"
#include "core/ops/transpose.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

constexpr std::int64_t kRows = 8;
constexpr OptimizerConfig kSgd = {.kind = OptimizerKind::Sgd, .momentum = 0};

ValueId parameter(Graph& graph, const std::string& name, const Shape& shape) {
  const auto seed = static_cast<unsigned>(name.size());
  return graph.add_state(name, random_tensor({DType::F32, shape}, seed, false),
                         StateRole::Parameter);
}

/// Two convolutions on [batch, 2, 4, 4] that make maps of so many classes.
ValueId maps(Graph& graph, std::int64_t batch, std::int64_t classes) {
  const auto x = graph.add_input("x", {DType::F32, Shape{batch, 2, 4, 4}});
  Conv conv;
  conv.kernel_shape = {1, 1};
  const auto h = graph.emit_one(make_op(conv), {x, parameter(graph, "k", Shape{4, 2, 1, 1})});
  const auto active = Formula(graph).apply(UnaryKind::Tanh, h);
  return graph.emit_one(make_op(conv),
                        {active, parameter(graph, "second", Shape{classes, 4, 1, 1})});
}

/// A step with a loss of the product.
TrainingStep with_loss(LossKind kind, std::int64_t classes, bool weighted) {
  return [=](std::int64_t batch) {
    Graph graph;
    const auto logits = maps(graph, batch, classes);
    const auto target = graph.add_input("t", target_spec(graph.spec(logits), kind, weighted));
    graph.mark_output("loss", training_loss(graph, kind, logits, target, weighted));
    return make_training_graph(std::move(graph), kSgd);
  };
}

using Loss = std::function<ValueId(Graph&, ValueId, std::int64_t)>;

/// A step with a loss formula of [batch, 3], the result of a product and an activation.
TrainingStep with_formula(const Loss& loss) {
  return [=](std::int64_t batch) {
    Graph graph;
    const auto x = graph.add_input("x", {DType::F32, Shape{batch, 5}});
    const auto y = graph.emit_one(make_op(MatMul{}), {x, parameter(graph, "k", Shape{5, 3})});
    graph.mark_output("loss", loss(graph, Formula(graph).apply(UnaryKind::Tanh, y), batch));
    return make_training_graph(std::move(graph), kSgd);
  };
}

ValueId mean(Graph& graph, ValueId x, std::vector<std::int64_t> axes = {}) {
  return graph.emit_one(make_op(Reduce(ReduceKind::Mean, std::move(axes), !axes.empty())), {x});
}

/// The square root of the mean square.
ValueId root_mean_square(Graph& graph, ValueId y, std::int64_t) {
  const Formula f(graph);
  return f.apply(UnaryKind::Sqrt, mean(graph, f.mul(y, y)));
}
/// A sum over the batch, not a mean.
ValueId sum_of_squares(Graph& graph, ValueId y, std::int64_t) {
  const Formula f(graph);
  return f.sum(f.mul(y, y), {}, false);
}
/// The mean as a sum over a count that the graph is built with.
ValueId sum_over_count(Graph& graph, ValueId y, std::int64_t batch) {
  const Formula f(graph);
  return f.div(sum_of_squares(graph, y, batch), 3.0 * static_cast<double>(batch));
}
/// A product of the root of a sum and a mean.
ValueId root_times_mean(Graph& graph, ValueId y, std::int64_t batch) {
  return Formula(graph).mul(root_mean_square(graph, y, batch), mean(graph, y));
}
/// Rows weighted by their part of a sum over the inputs, and the root of the result.
ValueId weighted_by_inputs(Graph& graph, ValueId y, std::int64_t) {
  const Formula f(graph);
  const auto x = graph.find("x");
  const auto lengths = f.sum(f.mul(x, x), {1});
  const auto weights = f.div(lengths, f.sum(lengths, {0}));
  return f.apply(UnaryKind::Sqrt, f.sum(f.mul(weights, f.mul(y, y)), {}, false));
}
/// Distances from the mean of the batch, to the third power: rows read a sum over rows.
ValueId distances_from_mean(Graph& graph, ValueId y, std::int64_t) {
  const Formula f(graph);
  const auto away = f.sub(y, mean(graph, y, {0}));
  return mean(graph, f.mul(away, f.mul(away, y)));
}
/// Rows over a sum that the parameters decide.
ValueId rows_over_sum(Graph& graph, ValueId y, std::int64_t) {
  const Formula f(graph);
  return f.sum(f.div(y, f.add(f.sum(f.mul(y, y), {}, false), 1.0)), {}, false);
}
/// Sums of the batch by every product and quotient that makes one of a mean.
ValueId sums_from_means(Graph& graph, ValueId y, std::int64_t batch) {
  const Formula f(graph);
  const auto one = mean(graph, f.mul(y, y));
  const double count = 3.0 * static_cast<double>(batch);
  const auto constant = graph.constant(scalar_tensor(static_cast<float>(count)));
  return f.add(f.add(f.mul(one, count), f.mul(constant, one)), f.div(one, 1 / count));
}
/// Means by every product that makes one of a sum.
ValueId means_from_sums(Graph& graph, ValueId y, std::int64_t batch) {
  const Formula f(graph);
  const auto sum = sum_of_squares(graph, y, batch);
  const double part = 1.0 / (4.0 * static_cast<double>(batch));
  const auto constant = graph.constant(scalar_tensor(static_cast<float>(part)));
  return f.sub(f.mul(f.mul(sum, part), 3.0), f.mul(constant, sum));
}
/// A sum of rows that is moved, cut and negated before it is added up.
ValueId moved_sum(Graph& graph, ValueId y, std::int64_t) {
  const Formula f(graph);
  Transpose transpose;
  transpose.perm = {1, 0};
  Slice first;
  first.starts = {0};
  first.ends = {2};
  first.axes = {1};
  first.steps = {1};
  const auto total = f.reshape(f.sum(f.mul(y, y), {0}, false), Shape{3, 1});
  const auto row = graph.emit_one(make_op(transpose), {total});
  const auto cut = graph.emit_one(make_op(first), {row});
  return mean(graph, f.apply(UnaryKind::Neg, f.apply(UnaryKind::Neg, cut)));
}
ValueId largest_row(Graph& graph, ValueId y, std::int64_t) {
  return mean(graph, graph.emit_one(make_op(Reduce(ReduceKind::Max, {0}, false)), {y}));
}

struct LossCase {
  std::string name;
  TrainingStep step;
};

std::vector<LossCase> cases() {
  using enum LossKind;
  return {{"labels_ignored", with_loss(CrossEntropy, 3, false)},
          {"binary", with_loss(CrossEntropy, 1, false)},
          {"weighted", with_loss(CrossEntropy, 3, true)},
          {"dice", with_loss(Dice, 3, false)},
          {"dice_binary", with_loss(Dice, 1, false)},
          {"dice_weighted", with_loss(Dice, 1, true)},
          {"dice_cross_entropy", with_loss(DiceCrossEntropy, 3, false)},
          {"root_mean_square", with_formula(root_mean_square)},
          {"sum_of_squares", with_formula(sum_of_squares)},
          {"sum_over_count", with_formula(sum_over_count)},
          {"root_times_mean", with_formula(root_times_mean)},
          {"weighted_by_inputs", with_formula(weighted_by_inputs)},
          {"sums_from_means", with_formula(sums_from_means)},
          {"means_from_sums", with_formula(means_from_sums)},
          {"moved_sum", with_formula(moved_sum)}};
}

struct Sharing {
  const char* strategy;
  int ranks;
  const char* mesh = "";
  int accumulate = 1;
  int shards = 0;
};

const std::vector<Sharing> kSharings = {{"dp", 2},
                                        {"dp", 4},
                                        {"dp", 1, "", 4},
                                        {"dp", 2, "", 2},
                                        {"dp", 2, "", 2, 4},
                                        {"ddp2d", 4, "node=2,device=2"},
                                        {"zero1", 2},
                                        {"zero2", 4},
                                        {"zero3", 2},
                                        {"ps-sync", 2},
                                        {"central", 3},
                                        {"layers", 2},
                                        {"layers", 4, "dp=2,pp=2"},
                                        {"pipeline:4", 1},
                                        {"pipeline:2", 2},
                                        {"pipeline:4,gpipe", 2},
                                        {"pipeline:2", 4, "dp=2,pp=2"},
                                        {"tp", 2},
                                        {"tp", 4, "dp=2,tp=2"}};

/// Sets how the run is shared. Returns the order of its sums.
const char* share_by(RunOptions& run, const Sharing& sharing) {
  run.mesh = sharing.mesh;
  run.accumulate = sharing.accumulate;
  run.shards = sharing.shards;
  return sharing.shards > 0 ? "shard-tree" : "rank-ordered";
}

class Losses : public testing::TestWithParam<LossCase> {};

TEST_P(Losses, are_those_of_one_rank_under_every_strategy) {
  RunOptions run = {
      .batch = kRows, .step = GetParam().step, .contract = Contract::F32, .learning_rate = 0.5F};
  const auto single = train_ranks("dp", 1, "rank-ordered", run);
  const auto& alone = single[0];
  for (const auto& sharing : kSharings) {
    const auto* order = share_by(run, sharing);
    const auto name = fmt::format("{} on {} {} accumulate {}", sharing.strategy, sharing.ranks,
                                  sharing.mesh, sharing.accumulate);
    for (const auto& rank : train_ranks(sharing.strategy, sharing.ranks, order, run)) {
      for (std::size_t i = 0; i < alone.losses.size(); ++i)
        EXPECT_NEAR(rank.losses[i], alone.losses[i], 2e-6 * (1 + std::abs(alone.losses[i])))
            << name << ", step " << i;
      for (const auto& [state, value] : rank.states) {
        const auto& whole = alone.states.at(state);
        if (value.spec() != whole.spec()) continue;  // a part
        for (std::size_t i = 0; i < whole.as<float>().size(); ++i)
          EXPECT_NEAR(value.as<float>()[i], whole.as<float>()[i], 2e-5) << name << ", " << state;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shares, Losses, testing::ValuesIn(cases()),
                         [](const auto& one) { return std::string(one.param.name); });

ShareStep half_of(const TrainingStep& step) {
  return step_of_share(step, {.rows = kRows / 2, .shares = 2});
}

TEST(Shares, of_a_plain_mean_have_the_graph_of_a_batch_of_their_size) {
  const auto binary = with_loss(LossKind::CrossEntropy, 1, false);
  for (const auto& step : {binary, with_formula(sum_over_count)})
    EXPECT_EQ(to_text(half_of(step).training.graph), to_text(step(kRows / 2).graph));
  EXPECT_NE(to_text(half_of(with_formula(sum_of_squares)).training.graph),
            to_text(with_formula(sum_of_squares)(kRows / 2).graph));
}

TEST(Shares, of_what_is_linear_in_sums_and_means_need_no_sums_on_the_way) {
  for (const auto& loss : {sum_over_count, sums_from_means, means_from_sums, moved_sum})
    EXPECT_TRUE(half_of(with_formula(loss)).training.share_means.empty());
  for (const auto& loss : {root_mean_square, weighted_by_inputs})
    EXPECT_FALSE(half_of(with_formula(loss)).training.share_means.empty());
}

/// If no label is ignored, a counted mean has the bits of a plain mean.
TEST(Shares, of_equal_counts_have_the_bits_of_plain_means) {
  const auto step = [](bool counted) {
    return [=](std::int64_t batch) {
      Graph graph;
      const auto logits = maps(graph, batch, 3);
      const auto labels = graph.constant(Tensor(TensorSpec{DType::I64, Shape{batch, 4, 4}}));
      SoftmaxCrossEntropyLoss loss;
      if (!counted) loss.reduction = "none";
      const auto losses = graph.emit_one(make_op(loss), {logits, labels});
      graph.mark_output("loss", counted ? losses : mean(graph, losses));
      return make_training_graph(std::move(graph), kSgd);
    };
  };
  EXPECT_FALSE(half_of(step(true)).training.share_means.empty());
  EXPECT_TRUE(half_of(step(false)).training.share_means.empty());
  for (const int ranks : {2, 3}) {
    const auto losses = [&](bool counted) {
      return train_ranks("dp", ranks, "rank-ordered", {.batch = 6, .step = step(counted)})[0]
          .losses;
    };
    EXPECT_THAT(losses(true), testing::Pointwise(testing::FloatEq(), losses(false)));
  }
}

TEST(Shares, say_what_cannot_be_exact) {
  using testing::ElementsAre;
  using testing::HasSubstr;
  using testing::IsEmpty;
  for (const auto& one : cases()) EXPECT_THAT(half_of(one.step).inexact, IsEmpty()) << one.name;
  EXPECT_THAT(half_of(with_formula(largest_row)).inexact, ElementsAre(HasSubstr("ReduceMax")));
  EXPECT_THAT(half_of(with_formula(distances_from_mean)).inexact, ElementsAre(HasSubstr("Sub")));
  EXPECT_THAT(half_of(with_formula(rows_over_sum)).inexact, ElementsAre(HasSubstr("Div")));
  EXPECT_THAT(half_of(training_step(small_model(), {})).inexact,
              ElementsAre(HasSubstr("statistics from 4 rows")));
  // Each row against every other: a share has a corner of the whole table.
  const auto table = [](Graph& graph, ValueId y, std::int64_t) {
    Transpose transpose;
    transpose.perm = {1, 0};
    const auto other = graph.emit_one(make_op(transpose), {y});
    return mean(graph, graph.emit_one(make_op(MatMul{}), {y, other}));
  };
  EXPECT_THAT(half_of(with_formula(table)).inexact, ElementsAre(HasSubstr("MatMul")));
  // Neighbours in the batch.
  const auto neighbours = [](Graph& graph, ValueId y, std::int64_t batch) {
    Slice first;
    first.starts = {0};
    first.ends = {batch / 2};
    first.axes = {0};
    first.steps = {1};
    return mean(graph, graph.emit_one(make_op(first), {y}));
  };
  EXPECT_THAT(half_of(with_formula(neighbours)).inexact, ElementsAre(HasSubstr("Slice")));
}

/// A step with a dropout of rows, one of a parameter, and batch rows that differ.
TrainingGraph with_dropout(std::int64_t batch) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, Shape{batch, 5}});
  Dropout drop;
  drop.training_mode = true;
  drop.seed = 5;
  const auto step = graph.constant(scalar_tensor<std::int64_t>(3));
  const auto dropped = [&](ValueId value) {
    ++drop.stream;
    return graph.emit(make_op(drop), std::vector<ValueId>{value, step})[0];
  };
  const auto w = dropped(parameter(graph, "k", Shape{5, 7}));
  const auto h = dropped(graph.emit_one(make_op(MatMul{}), {x, w}));
  const auto y = graph.emit_one(make_op(MatMul{}), {h, parameter(graph, "second", Shape{7, 3})});
  graph.mark_output("loss", mean(graph, Formula(graph).mul(y, y)));
  return make_training_graph(std::move(graph), kSgd);
}

TEST(Shares, draw_for_the_elements_of_the_whole_batch) {
  RunOptions run = {.batch = kRows, .step = with_dropout, .contract = Contract::F32};
  const auto single = train_ranks("dp", 1, "rank-ordered", run);
  const auto& alone = single[0];
  for (const auto& sharing : kSharings) {
    const auto* order = share_by(run, sharing);
    const auto losses = train_ranks(sharing.strategy, sharing.ranks, order, run)[0].losses;
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], alone.losses[i], 1e-6) << sharing.strategy << sharing.ranks;
  }
}

}  // namespace
}  // namespace triptych::parallel
