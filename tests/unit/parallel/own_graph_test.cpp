// A graph that is no preset of ours is trained by every strategy, with any names.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/conv.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/reshape.h"
#include "core/ops/unary.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

/// Builds operators one after another.
struct Builder {
  Graph graph;

  ValueId add(OpPtr op, const std::vector<ValueId>& inputs) {
    return graph.add_node(std::move(op), inputs).front();
  }
  ValueId parameter(const std::string& name, const Shape& shape) {
    const auto seed = static_cast<unsigned>(name.size());
    return graph.add_state(name, random_tensor({DType::F32, shape}, seed, false),
                           StateRole::Parameter);
  }
};

/// A regression with a convolution, a normalisation and two linear layers. Nothing is called as our
/// models call it.
TrainingGraph regression(std::int64_t batch) {
  Builder own;
  const auto picture = own.graph.add_input("picture", {DType::F32, Shape{batch, 2, 6, 6}});
  const auto wanted = own.graph.add_input("wanted", {DType::F32, Shape{batch, 3}});
  Conv conv;
  conv.kernel_shape = {3, 3};
  auto h = own.add(make_op(conv), {picture, own.parameter("k", Shape{4, 2, 3, 3})});
  BatchNormalization norm;
  norm.training_mode = true;
  const auto statistic = [&](const char* name, float value) {
    return own.graph.add_state(name, Tensor(Shape{4}, std::vector<float>(4, value)),
                               StateRole::Statistic);
  };
  h = own.add(make_op(norm), {h, own.parameter("gamma", Shape{4}), own.parameter("beta!", Shape{4}),
                              statistic("m", 0), statistic("v", 1)});
  h = own.add(make_op(Unary(UnaryKind::Relu)), {h});
  Reshape flat;
  flat.shape = {batch, 64};
  h = own.add(make_op(flat), {h});
  h = own.add(make_op(MatMul{}), {h, own.parameter("first", Shape{64, 8})});
  h = own.add(make_op(Unary(UnaryKind::Relu)), {h});
  h = own.add(make_op(MatMul{}), {h, own.parameter("second", Shape{8, 3})});
  const auto error = own.add(make_op(Binary(BinaryKind::Sub)), {h, wanted});
  const auto square = own.add(make_op(Binary(BinaryKind::Mul)), {error, error});
  own.graph.mark_output("loss", own.add(make_op(Reduce(ReduceKind::Mean)), {square}));
  return make_training_graph(std::move(own.graph), {});
}

/// The losses, and the states that `part` has.
void expect_same(const Outcome& part, const Outcome& whole) {
  EXPECT_EQ(part.losses, whole.losses);
  for (const auto& [name, state] : part.states)
    EXPECT_THAT(state.as<float>(), testing::ElementsAreArray(whole.states.at(name).as<float>()))
        << name;
}

TEST(OwnGraph, has_the_bits_that_each_strategy_promises) {
  const RunOptions run = {.step = regression};
  const auto one = train_ranks("dp", 1, "rank-ordered", run);
  const Outcome& alone = one[0];
  EXPECT_LT(alone.losses.back(), alone.losses.front());
  for (const auto& stage : train_ranks("layers", 2, "rank-ordered", run)) expect_same(stage, alone);
  EXPECT_EQ(train_ranks("pipeline:2", 2, "rank-ordered", run)[0].losses,
            train_ranks("pipeline:2", 1, "rank-ordered", run)[0].losses);
  const auto replicas = train_ranks("dp", 2, "rank-ordered", run);
  for (const char* name : {"k", "gamma", "first", "second"})  // statistics are each rank's own
    EXPECT_THAT(replicas[1].states.at(name).as<float>(),
                testing::ElementsAreArray(replicas[0].states.at(name).as<float>()));
  for (const char* strategy : {"zero1", "zero2", "zero3"})
    EXPECT_EQ(train_ranks(strategy, 2, "rank-ordered", run)[1].losses, replicas[0].losses)
        << strategy;
  EXPECT_EQ(train_ranks("ps-sync", 2, "rank-ordered", run)[1].losses, replicas[0].losses);
  const auto parts = train_ranks("tp", 2, "rank-ordered", run)[0].losses;
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_NEAR(parts[i], alone.losses[i], 1e-5);
}

/// The same step with names at random.
TrainingGraph renamed(const TrainingGraph& training, unsigned seed) {
  std::mt19937 random(seed);
  const Graph& source = training.graph;
  TrainingGraph result;
  std::map<ValueId, ValueId> values;
  std::map<std::string, std::string> names;
  const auto name = [&] { return "n" + std::to_string(random()); };
  const auto leaf = [&](const Value& value) {
    const auto own = name();
    Graph& graph = result.graph;
    values[value.id] = value.kind == ValueKind::Input ? graph.add_input(own, value.spec)
                       : value.kind == ValueKind::State
                           ? graph.add_state(own, value.data, value.role)
                           : graph.add_constant(own, value.data);
  };
  for (const auto& value : source.values())
    if (value.kind != ValueKind::Activation) leaf(value);
  for (const auto& node : source.nodes()) {
    std::vector<ValueId> inputs;
    for (const auto input : node.inputs) inputs.push_back(values.at(input));
    const auto forward = values.find(node.differentiates);
    const auto phase =
        result.graph.phase(node.phase, forward == values.end() ? ValueId{} : forward->second);
    const auto outputs = result.graph.add_node(node.op, inputs, name());
    for (std::size_t i = 0; i < outputs.size(); ++i) values[node.outputs[i]] = outputs[i];
  }
  for (const auto& output : source.outputs())
    result.graph.mark_output(output.name, values.at(output.value));
  const auto rename = [&](const std::vector<std::string>& old) {
    std::vector<std::string> own;
    for (const auto& text : old)
      own.push_back(result.graph.value(values.at(source.find(text))).name);
    return own;
  };
  result.parameters = rename(training.parameters);
  result.parameter_gradients = rename(training.parameter_gradients);
  result.batch_inputs = rename(training.batch_inputs);
  return result;
}

/// Operators, wiring and specs, without any name.
std::string structure(const RankGraph& rank) {
  std::string text;
  const auto number = [&](ValueId value) { text += " " + std::to_string(value.index()); };
  std::map<ValueId, std::size_t> order;
  for (const auto& node : rank.graph.nodes()) {
    text += node.op->name();
    for (const auto input : node.inputs) {
      const auto& value = rank.graph.value(input);
      if (value.kind == ValueKind::Activation) {
        number(ValueId{value.producer.value});
        text += ":" + std::to_string(value.output_index);
      } else {
        text += " " + to_string(value.spec);
      }
    }
    text += " " + std::to_string(static_cast<int>(node.phase)) + "\n";
  }
  return text + std::to_string(rank.homes.size());
}

TEST(OwnGraph, names_change_no_rank_s_graph) {
  const auto model = small_model();
  for (const TrainingStep& step : {TrainingStep(regression), training_step(model, {})}) {
    for (const std::string strategy : {"dp", "zero2", "zero3", "layers", "pipeline:2", "tp",
                                       "ps-sync", "central", "ps-async", "local-sgd-async"}) {
      for (int rank = 0; rank < 2; ++rank) {
        const auto graph_of = [&](const TrainingStep& own) {
          return structure(
              make_rank_graph(strategy_from_string(strategy),
                              {.step = own, .batch = kBatch, .world_size = 2, .rank = rank}));
        };
        const auto other = [&](std::int64_t batch) { return renamed(step(batch), 7); };
        EXPECT_EQ(graph_of(other), graph_of(step)) << strategy << ", rank " << rank;
      }
    }
  }
}

TEST(OwnGraph, what_cannot_be_trained_is_refused_with_what_is_missing) {
  const auto refusal = [](Graph graph) -> std::string {
    try {
      make_training_graph(std::move(graph), {});
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  Graph graph;
  const auto x = graph.add_input("a", {DType::F32, Shape{2, 3}});
  EXPECT_THAT(refusal(graph.clone()), testing::HasSubstr("StateRole::Parameter"));
  const auto w =
      graph.add_state("w", Tensor(Shape{3, 3}, std::vector<float>(9, 1)), StateRole::Parameter);
  const std::vector<ValueId> factors = {x, w};
  const std::vector<ValueId> product = graph.add_node(make_op(MatMul{}), factors);
  EXPECT_THAT(refusal(graph.clone()), testing::HasSubstr("\"loss\""));
  graph.mark_output("loss", graph.add_node(make_op(Reduce(ReduceKind::Mean)), product).front());
  EXPECT_EQ(refusal(graph.clone()), "");
  graph.add_input("weights", {DType::F32, Shape{5}});
  EXPECT_THAT(refusal(graph.clone()), testing::HasSubstr("\"weights\""));
}

}  // namespace
}  // namespace triptych::parallel
