// Values that cross between ranks: parameters that two stages read, masks and indices, and
// parameters without a gradient.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/formula.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/where.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

constexpr std::int64_t kRows = 8;
constexpr std::int64_t kWidth = 4;

struct Net {
  Graph graph;
  ValueId x;

  explicit Net(std::int64_t batch) { x = graph.add_input("x", {DType::F32, Shape{batch, kWidth}}); }
  ValueId parameter(const std::string& name, Shape shape = {kWidth, kWidth}) {
    const auto seed = static_cast<unsigned>(name.size());
    return graph.add_state(name, random_tensor({DType::F32, std::move(shape)}, seed, false),
                           StateRole::Parameter);
  }
  ValueId layer(ValueId h, ValueId weight) {
    return Formula(graph).apply(UnaryKind::Tanh, graph.emit_one(make_op(MatMul{}), {h, weight}));
  }
  TrainingGraph finish(ValueId y) {
    const Formula f(graph);
    const auto error = f.sub(y, 0.5);
    graph.mark_output("loss", graph.emit_one(make_op(Reduce(ReduceKind::Mean, {}, false)),
                                             {f.mul(error, error)}));
    return make_training_graph(std::move(graph), {.kind = OptimizerKind::Sgd, .momentum = 0});
  }
};

/// The first layer's weight is the last one's, too.
TrainingGraph tied(std::int64_t batch) {
  Net net(batch);
  const auto weight = net.parameter("tied");
  auto h = net.layer(net.x, weight);
  for (const char* name : {"a", "bb"}) h = net.layer(h, net.parameter(name));
  return net.finish(net.layer(h, weight));
}

/// A mask and indices that an early layer makes for a late one.
TrainingGraph masked(std::int64_t batch) {
  Net net(batch);
  const Formula f(net.graph);
  auto h = net.layer(net.x, net.parameter("a"));
  const auto mask = f.apply(BinaryKind::Greater, h, 0.1);
  ArgMax largest;
  largest.axis = 1;
  const auto index = net.graph.emit_one(make_op(largest), {h});
  for (const char* name : {"bb", "ccc"}) h = net.layer(h, net.parameter(name));
  h = net.graph.emit_one(make_op(Where{}), {mask, h, f.mul(h, 0.25)});
  return net.finish(f.mul(h, f.cast(index, DType::F32)));
}

/// "gate" stands behind a comparison, and nothing reads "unread".
TrainingGraph gated(std::int64_t batch) {
  Net net(batch);
  const Formula f(net.graph);
  net.parameter("unread", Shape{3, 5});
  const auto gate = f.apply(BinaryKind::Greater, net.layer(net.x, net.parameter("gate")), 0.0);
  const auto h = net.layer(net.x, net.parameter("a"));
  return net.finish(net.layer(f.mul(h, f.cast(gate, DType::F32)), net.parameter("bb")));
}

/// A parameter that the gate reads before the layer through which its gradient comes, and two that
/// have one gradient.
TrainingGraph gradient_of_later(std::int64_t batch) {
  Net net(batch);
  const Formula f(net.graph);
  const auto weight = net.parameter("a");
  const auto gate = f.apply(BinaryKind::Greater, net.layer(net.x, weight), 0.0);
  auto h = f.mul(net.layer(net.x, net.parameter("bb")), f.cast(gate, DType::F32));
  h = net.layer(h, f.add(net.parameter("one"), net.parameter("more")));
  return net.finish(net.layer(h, weight));
}

/// Two batch normalisations of one scale and bias. They share their statistics, too, or have their
/// own.
TrainingGraph normalised(std::int64_t batch, bool shared) {
  Net net(batch);
  const Shape channels = {kWidth};
  const auto scale = net.parameter("scale", channels), bias = net.parameter("bias", channels);
  const auto statistic = [&](const std::string& name) {
    return net.graph.add_state(name, random_tensor({DType::F32, channels}, 9, true),
                               StateRole::Statistic);
  };
  ValueId mean, variance, h = net.x;
  for (const std::string name : {"a", "bb"}) {
    if (!shared || name == "a") {
      mean = statistic(name + ".mean");
      variance = statistic(name + ".variance");
    }
    BatchNormalization norm;
    norm.training_mode = true;
    const std::vector<ValueId> inputs = {net.layer(h, net.parameter(name)), scale, bias, mean,
                                         variance};
    const auto outputs = net.graph.add_node(make_op(norm), inputs, "norm." + name);
    h = outputs[0];
    mean = outputs[1];
    variance = outputs[2];
  }
  return net.finish(net.layer(h, net.parameter("ccc")));
}
TrainingGraph shared_norm(std::int64_t batch) { return normalised(batch, true); }
TrainingGraph shared_scale(std::int64_t batch) { return normalised(batch, false); }

struct Case {
  const char* name;
  TrainingGraph (*step)(std::int64_t);
};

class Values : public testing::TestWithParam<Case> {};

TEST_P(Values, train_as_on_one_rank_under_every_strategy) {
  RunOptions run = {
      .batch = kRows, .step = GetParam().step, .contract = Contract::F32, .learning_rate = 0.5F};
  const auto single = train_ranks("dp", 1, "rank-ordered", run);
  struct Sharing {
    const char* strategy;
    int ranks;
    const char* mesh = "";
  };
  for (const auto& [strategy, ranks, mesh] : {Sharing{"layers", 2},
                                              {"layers", 3},
                                              {"layers", 5},
                                              {"pipeline:2", 2},
                                              {"pipeline:4", 3},
                                              {"pipeline:2", 1},
                                              {"pipeline:2", 4, "dp=2,pp=2"},
                                              {"dp", 2},
                                              {"zero1", 2},
                                              {"zero2", 4},
                                              {"zero3", 2},
                                              {"tp", 2},
                                              {"tp", 4, "dp=2,tp=2"},
                                              {"ps-sync", 2},
                                              {"central", 3}}) {
    run.mesh = mesh;
    const auto& one = single[0];
    for (const auto& rank : train_ranks(strategy, ranks, "rank-ordered", run)) {
      for (std::size_t i = 0; i < one.losses.size(); ++i)
        EXPECT_NEAR(rank.losses[i], one.losses[i], 2e-6) << strategy << " on " << ranks;
      for (const auto& [name, state] : rank.states) {
        if (state.spec() != one.states.at(name).spec()) continue;  // a part
        for (std::size_t i = 0; i < state.as<float>().size(); ++i)
          EXPECT_NEAR(state.as<float>()[i], one.states.at(name).as<float>()[i], 2e-5)
              << strategy << " on " << ranks << ", " << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parallel, Values,
                         testing::Values(Case{"tied", tied}, Case{"masked", masked},
                                         Case{"gated", gated},
                                         Case{"gradient_of_later", gradient_of_later}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(Values, of_norms_may_share_scale_and_bias_between_stages) {
  const RunOptions run = {
      .batch = kRows, .step = shared_scale, .contract = Contract::F32, .learning_rate = 0.5F};
  const auto single = train_ranks("dp", 1, "rank-ordered", run);
  const auto& one = single[0];
  for (const int ranks : {2, 3}) {
    for (const auto& rank : train_ranks("layers", ranks, "rank-ordered", run)) {
      for (std::size_t i = 0; i < one.losses.size(); ++i)
        EXPECT_NEAR(rank.losses[i], one.losses[i], 2e-6) << ranks;
      for (const auto& [name, state] : rank.states) {
        for (std::size_t i = 0; i < state.as<float>().size(); ++i)
          EXPECT_NEAR(state.as<float>()[i], one.states.at(name).as<float>()[i], 2e-5) << name;
      }
    }
  }
}

TEST(Values, of_a_norm_that_is_applied_twice_are_refused_in_stages_of_any_cut) {
  const auto graph_of = [](const char* strategy, StrategyRequest request) {
    request.step = shared_norm;
    request.batch = 8;
    return make_rank_graph(strategy_from_string(strategy), request);
  };
  const auto refusal = [&](const char* strategy, const StrategyRequest& request) -> std::string {
    try {
      graph_of(strategy, request);
      return "not refused";
    } catch (const UnsupportedError& error) {
      return error.what();
    }
  };
  for (const char* strategy : {"layers", "pipeline:2"}) {
    EXPECT_THAT(refusal(strategy, {.world_size = 2}),
                testing::AllOf(testing::HasSubstr("\"norm.a\" and \"norm.bb\""),
                               testing::HasSubstr("use the strategy dp")));
  }
  EXPECT_THAT(refusal("dp", {.order = ReductionOrder::ShardTree, .shards = 2}),
              testing::HasSubstr("choose another order"));
  verify(graph_of("dp", {.world_size = 2}).graph);
  verify(graph_of("dp", {.accumulate = 2}).graph);
}

TEST(Values, without_rows_are_inputs_of_the_stages_that_read_them) {
  const TrainingStep step = [](std::int64_t batch) {
    Net net(batch);
    const auto scale = net.graph.add_input("scale", {DType::F32, Shape{}});
    auto h = net.layer(net.x, net.parameter("a"));
    h = net.layer(h, net.parameter("bb"));
    return net.finish(Formula(net.graph).mul(h, scale));
  };
  for (const char* strategy : {"layers", "pipeline:2"}) {
    int readers = 0;
    for (int rank = 0; rank < 2; ++rank) {
      const auto own = make_rank_graph(strategy_from_string(strategy),
                                       {.step = step, .batch = 4, .world_size = 2, .rank = rank});
      verify(own.graph);
      readers += own.graph.contains("scale") ? 1 : 0;
    }
    EXPECT_GE(readers, 1) << strategy;
  }
}

}  // namespace
}  // namespace triptych::parallel
