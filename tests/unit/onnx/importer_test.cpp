// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/importer.h"

#include <gmock/gmock.h>

#include <limits>
#include <numeric>

#include "core/autodiff/autodiff.h"
#include "core/graph/passes/passes.h"
#include "core/ops/reduce.h"
#include "tests/unit/onnx/evaluate_model.h"

namespace triptych::onnx {
namespace {

using test::imported;
using test::kInt32;
using test::one_node;
using test::Sample;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

auto near_to(double value) { return ::testing::DoubleNear(value, 1e-6); }

TensorPtr tensor(Shape shape, const std::vector<float>& values) {
  return std::make_shared<const Tensor>(std::move(shape), values);
}

/// The output "y" for this input "x".
std::vector<double> evaluated(const Sample& sample, TensorPtr x) {
  ImportOptions options;
  options.given.emplace("x", x);
  const auto import = imported(sample, options);
  const auto values =
      evaluate_reference(import.graph, {{import.graph.find("x"), to_reference(*x)}});
  return values[import.graph.outputs().front().value.index()].values;
}

TEST(OnnxImporter, a_model_computes_what_it_says) {
  EXPECT_THAT(evaluated(test::dense_sample(), tensor({2, 2}, {1, 1, 2, 0})),
              ElementsAre(0, 7, 19, 0, 4, 16));
}

TEST(OnnxImporter, symbols_are_bound) {
  const auto import = imported(test::dense_sample(), {.bind = {{"batch", 5}}, .given = {}});
  const auto& graph = import.graph;
  EXPECT_EQ(graph.spec(graph.outputs().front().value).shape, (Shape{5, 3}));
  EXPECT_EQ(graph.outputs().front().name, "y");
  EXPECT_THROW(imported(test::dense_sample()), InvalidArgument);
  EXPECT_THROW(imported(test::dense_sample(), {.bind = {{"batches", 5}}, .given = {}}),
               InvalidArgument);
}

TEST(OnnxImporter, inputs_that_share_a_symbol_share_its_size) {
  Sample sample;
  sample.input("x", {-1, 2}).input("z", {-1, 1}).node("Mul", {"x", "z"}, {"y"}).output("y");
  ImportOptions options;
  options.given.emplace("x", tensor({2, 2}, {1, 2, 3, 4}));
  options.given.emplace("z", tensor({1, 1}, {1}));
  EXPECT_THROW(imported(sample, options), InvalidArgument);
}

TEST(OnnxImporter, arithmetic_with_shapes_leaves_no_nodes) {
  Sample sample;
  sample.input("x", {2, 3, 4}).node("Shape", {"x"}, {"s"}).node("Gather", {"s", "i"}, {"first"});
  sample.node("Concat", {"first", "rest"}, {"to"}).integer("axis", 0);
  sample.node("Reshape", {"x", "to"}, {"y"}).output("y");
  sample.constants("i", {0});
  sample.constants("rest", {-1});
  const auto graph = eliminate_dead_code(imported(sample).graph);
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_EQ(graph.nodes()[0].op->name(), "Reshape");
  EXPECT_EQ(graph.spec(graph.outputs()[0].value).shape, (Shape{2, 12}));
}

TEST(OnnxImporter, a_shape_may_follow_from_an_input_that_is_given) {
  Sample sample;
  sample.input("x", {2, 3}).input("to", {1}, test::kInt64);
  sample.node("Reshape", {"x", "to"}, {"y"}).output("y");
  const std::vector<std::int64_t> six = {6};
  ImportOptions options;
  options.given.emplace("to", std::make_shared<const Tensor>(Shape{1}, six));
  const auto graph = imported(sample, options).graph;
  EXPECT_EQ(graph.spec(graph.outputs()[0].value).shape, Shape{6});
  EXPECT_THROW(imported(sample), UnsupportedError);
}

TEST(OnnxImporter, what_is_not_supported_is_named_with_node_operator_and_reason) {
  auto sample = test::dense_sample();
  sample.graph().mutable_node(2)->set_op_type("NonMaxSuppression");
  try {
    imported(sample, {.bind = {{"batch", 1}}, .given = {}});
    FAIL() << "it was imported";
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(error.what(), "node \"#2\" (NonMaxSuppression): the operator is not supported");
  }
}

TEST(OnnxImporter, an_attribute_that_nobody_asks_for_is_not_passed_over) {
  auto sample = test::dense_sample();
  sample.integer("slope", 3);
  EXPECT_THROW(imported(sample, {.bind = {{"batch", 1}}, .given = {}}), UnsupportedError);
}

TEST(OnnxImporter, a_merged_node_stands_for_the_nodes_of_the_file) {
  Sample sample;
  sample.input("x", {1, 4}).node("Neg", {"x"}, {"n"}).node("Exp", {"n"}, {"e"});
  sample.node("Abs", {"x"}, {"a+1"}).node("Relu", {"a+1"}, {"r"});
  // The name of this sum is that of the first chain.
  sample.node("Add", {"e", "r"}, {"n+onnx.e"}).output("n+onnx.e");
  const auto graph = fuse_elementwise(imported(sample).graph,
                                      [](const Node& node) { return node.op->name() != "Add"; });
  std::vector<std::vector<std::string>> chains;
  for (const auto& node : graph.nodes())
    if (!node.merged.empty()) chains.push_back(node.merged);
  EXPECT_THAT(chains,
              ElementsAre(ElementsAre("onnx.n", "onnx.e"), ElementsAre("onnx.a+1", "onnx.r")));
}

TEST(OnnxImporter, a_survey_goes_on_behind_an_obstacle) {
  auto sample = test::dense_sample();
  sample.graph().mutable_node(1)->set_op_type("NonMaxSuppression");
  const test::TemporaryFolder folder;
  const auto survey = survey_model(load_model(sample.save(folder / "m.onnx")),
                                   {.bind = {{"batch", 1}}, .given = {}});
  ASSERT_EQ(survey.nodes.size(), 3u);
  EXPECT_EQ(survey.nodes[0].obstacle, "");
  EXPECT_THAT(survey.nodes[1].obstacle, HasSubstr("not supported"));
  EXPECT_THAT(survey.nodes[2].obstacle, HasSubstr("\"s\" of a node that is not supported"));
  EXPECT_TRUE(survey.graph.outputs().empty());
}

/// One convolution in three dimensions against sums by hand: kernel depth 2, stride 2, pad 1.
TEST(OnnxImporter, convolution_in_three_dimensions) {
  Sample sample;
  sample.input("x", {1, 1, 3, 1, 1}).node("Conv", {"x", "w"}, {"y"}).output("y");
  sample.integers("strides", {2, 1, 1}).integers("pads", {1, 0, 0, 0, 0, 0});
  sample.floats("w", {1, 1, 2, 1, 1}, {10, 1});
  EXPECT_THAT(evaluated(sample, tensor({1, 1, 3, 1, 1}, {1, 2, 3})), ElementsAre(1, 23));
}

TEST(OnnxImporter, transposed_convolution_in_three_dimensions) {
  Sample sample;
  sample.input("x", {1, 1, 2, 1, 1}).node("ConvTranspose", {"x", "w", "b"}, {"y"}).output("y");
  sample.integers("strides", {2, 1, 1}).integers("dilations", {2, 1, 1});
  sample.floats("w", {1, 1, 2, 1, 1}, {10, 1});
  sample.floats("b", {1}, {0.5F});
  EXPECT_THAT(evaluated(sample, tensor({1, 1, 2, 1, 1}, {1, 2})),
              ElementsAre(10.5, 0.5, 21.5, 0.5, 2.5));
}

/// Depths of the kernel that do not meet in an output: two channels, two depths of 2 x 1 each, the
/// first output depth cut off.
TEST(OnnxImporter, transposed_convolution_whose_depths_stand_apart) {
  Sample sample;
  sample.input("x", {1, 1, 2, 1, 1}).node("ConvTranspose", {"x", "w", "b"}, {"y"}).output("y");
  sample.integers("strides", {2, 1, 1}).integers("pads", {1, 0, 0, 0, 0, 0});
  sample.floats("w", {1, 2, 2, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  sample.floats("b", {2}, {0.5F, 0.25F});
  EXPECT_THAT(evaluated(sample, tensor({1, 1, 2, 1, 1}, {10, 100})),
              ElementsAre(30.5, 40.5, 100.5, 200.5, 300.5, 400.5, 70.25, 80.25, 500.25, 600.25,
                          700.25, 800.25));
}

/// A kernel of one element mixes the channels of each position.
TEST(OnnxImporter, pointwise_convolution_in_three_dimensions) {
  Sample sample;
  sample.input("x", {1, 2, 2, 1, 2}).node("Conv", {"x", "w", "b"}, {"y"}).output("y");
  sample.floats("w", {1, 2, 1, 1, 1}, {10, 1});
  sample.floats("b", {1}, {0.5F});
  EXPECT_THAT(evaluated(sample, tensor({1, 2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8})),
              ElementsAre(15.5, 26.5, 37.5, 48.5));
}

TEST(OnnxImporter, pooling_in_three_dimensions) {
  const auto pooled = [](const char* op) {
    Sample sample;
    sample.input("x", {1, 1, 2, 2, 2}).node(op, {"x"}, {"y"}).output("y");
    sample.integers("kernel_shape", {2, 2, 1}).integers("pads", {1, 0, 0, 0, 0, 0});
    return evaluated(sample, tensor({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  };
  EXPECT_THAT(pooled("MaxPool"), ElementsAre(3, 4, 7, 8));
  EXPECT_THAT(pooled("AveragePool"), ElementsAre(2, 3, 4, 5));
}

TEST(OnnxImporter, the_reference_lists_every_operator) {
  const auto page = test::get_file(TRIPTYCH_SOURCE_DIR "/docs/reference/onnx.md");
  for (const auto& name : importable_operators()) {
    EXPECT_THAT(page, ::testing::ContainsRegex("[ ;]" + name + "[ ,;]")) << name;
  }
}

/// The first of equal maxima, of a window of 2 with a pad before. Places count in the whole input.
TEST(OnnxImporter, places_of_maxima) {
  Sample sample;
  sample.input("x", {1, 2, 1, 3}).node("MaxPool", {"x"}, {"m", "y"}).output("y", test::kInt64);
  sample.integers("kernel_shape", {1, 2}).integers("pads", {0, 1, 0, 0});
  EXPECT_THAT(evaluated(sample, tensor({1, 2, 1, 3}, {5, 5, 4, -1, -2, 0})),
              ElementsAre(0, 0, 1, 3, 3, 5));
}

/// Logarithms of shares 1 and 3. The weights are 2 and 1, the last target does not count.
TEST(OnnxImporter, weighted_loss_with_a_class_that_does_not_count) {
  Sample sample;
  sample.input("x", {3, 2}).node("NegativeLogLikelihoodLoss", {"x", "t", "w"}, {"y"}).output("y");
  sample.integer("ignore_index", 7);
  sample.constants("t", {0, 1, 7});
  sample.floats("w", {2}, {2, 1});
  EXPECT_THAT(evaluated(sample, tensor({3, 2}, {-1, -5, -5, -4, -9, -9})), ElementsAre(2));
}

TEST(OnnxImporter, arithmetic_of_8_bits_wraps) {
  using test::kUint8;
  Sample sample;
  sample.input("x", {2}, kUint8).node("Sub", {"x", "c"}, {"y"}).output("y", kUint8);
  sample.initializer("c", {2}, kUint8).set_raw_data("\x02\x03");
  const std::vector<std::uint8_t> x = {1, 5};
  EXPECT_THAT(evaluated(sample, std::make_shared<const Tensor>(Shape{2}, x)), ElementsAre(255, 2));
}

TEST(OnnxImporter, a_value_larger_than_the_limit_is_refused) {
  Sample sample;
  sample.input("x", {1}).node("Expand", {"x", "to"}, {"y"}).output("y");
  sample.constants("to", {std::int64_t{1} << 40});
  EXPECT_THROW(imported(sample), InvalidArgument);
}

TEST(OnnxImporter, infinities_and_vectors_of_zeros_have_their_values) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto x = tensor({3, 2}, {-kInfinity, -kInfinity, kInfinity, 1, -kInfinity, 2});
  auto sum = one_node("ReduceLogSumExp", {3, 2});
  sum.integers("axes", {1}).integer("keepdims", 0);
  EXPECT_THAT(evaluated(sum, x), ElementsAre(-kInfinity, kInfinity, 2));
  auto unit = one_node("LpNormalization", {2, 2});
  EXPECT_THAT(evaluated(unit, tensor({2, 2}, {0, 0, 3, 4})),
              ElementsAre(0, 0, near_to(0.6), near_to(0.8)));
}

TEST(OnnxImporter, a_norm_has_the_gradient_zero_at_zero) {
  auto sample = one_node("ReduceL2", {2, 2});
  sample.integers("axes", {1});
  auto graph = imported(sample).graph.clone();
  const auto x = graph.find("x");
  const auto loss =
      graph.emit_one(make_op(Reduce(ReduceKind::Sum, {}, false)), {graph.outputs().front().value});
  const auto slope = add_gradients(graph, loss, std::array{x}).front();
  const auto values = evaluate_reference(graph, {{x, {graph.spec(x), {0, 0, 3, 4}}}});
  EXPECT_THAT(values[slope.index()].values, ElementsAre(0, 0, near_to(0.6), near_to(0.8)));
}

TEST(OnnxImporter, whole_numbers_have_exact_powers_for_whole_exponents_of_any_type) {
  Sample sample;
  sample.input("x", {4}, kInt32).input("e", {4}).node("Pow", {"x", "e"}, {"y"});
  sample.output("y", kInt32);
  const auto graph = imported(sample).graph;
  const TensorSpec bases{DType::I32, {4}}, exponents{DType::F32, {4}};
  const auto values = evaluate_reference(graph, {{graph.find("x"), {bases, {257, -3, 100, 1290}}},
                                                 {graph.find("e"), {exponents, {3, 3, 0.5, 3}}}});
  EXPECT_THAT(values[graph.outputs().front().value.index()].values,
              ElementsAre(16974593, -27, 10, 2146689000));
}

TEST(OnnxImporter, an_index_beyond_its_axis_is_refused_and_not_one_of_the_next_row) {
  Sample sample;
  sample.input("x", {3, 2}).input("i", {3, 2}, test::kInt64);
  sample.node("GatherElements", {"x", "i"}, {"y"}).integer("axis", 1).output("y");
  const auto graph = imported(sample).graph;
  const auto run = [&](double index) {
    const TensorSpec x{DType::F32, {3, 2}}, i{DType::I64, {3, 2}};
    return evaluate_reference(graph, {{graph.find("x"), {x, {1, 2, 3, 4, 5, 6}}},
                                      {graph.find("i"), {i, {0, 1, -1, 0, index, 0}}}});
  };
  EXPECT_THAT(run(-2)[graph.outputs().front().value.index()].values, ElementsAre(1, 2, 4, 3, 5, 5));
  EXPECT_THAT([&] { run(2); }, testing::ThrowsMessage<InvalidArgument>(
                                   HasSubstr("index 2 at position 4 is outside [-2, 1]")));
}

TEST(OnnxImporter, a_given_value_is_known_up_to_1024_elements) {
  for (const std::int64_t count : {1024, 1025}) {
    Sample sample;
    sample.input("x", {count}).input("i", {count}, test::kInt64).input("u", {count});
    sample.node("ScatterElements", {"x", "i", "u"}, {"y"}).output("y");
    std::vector<std::int64_t> places(static_cast<std::size_t>(count));
    std::iota(places.begin(), places.end(), 0);
    ImportOptions options;
    options.given.emplace("i", std::make_shared<const Tensor>(Shape{count}, places));
    if (count == 1024) {
      EXPECT_NO_THROW(imported(sample, options));
    } else {
      EXPECT_THROW(imported(sample, options), UnsupportedError);
    }
  }
}

TEST(OnnxImporter, dropout_draws_from_the_seed_that_is_given_and_counts_the_runs) {
  Sample sample(15);
  sample.input("x", {64}).node("Dropout", {"x", "ratio", "training"}, {"y"}).output("y");
  sample.floats("ratio", {}, {0.5F});
  sample.initializer("training", {}, 9).add_int32_data(1);
  EXPECT_THROW(imported(sample), UnsupportedError);
  const auto graph = imported(sample, {.dropout_seed = 5}).graph;
  const auto step = graph.find("dropout.step");
  EXPECT_TRUE(std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    const auto updates = node.updates();
    return updates.size() == 1 && updates.front().before == step;
  }));
}

TEST(OnnxImporter, a_dropout_that_lost_its_training_is_refused_in_training) {
  const auto model = [](float ratio) {
    Sample sample(15);
    sample.input("x", {64}).node("Dropout", {"x", "ratio"}, {"y"}).output("y");
    sample.floats("ratio", {}, {ratio});
    return sample;
  };
  imported(model(0.5F));
  imported(model(0), {.dropout_seed = 5});
  EXPECT_THAT([&] { imported(model(0.5F), {.dropout_seed = 5}); },
              testing::ThrowsMessage<UnsupportedError>(HasSubstr("training_mode")));
}

TEST(OnnxImporter, indices_of_a_pooling_are_those_of_its_maxima_with_nan) {
  Sample sample;
  sample.input("x", {1, 1, 1, 6}).node("MaxPool", {"x"}, {"m", "y"}).output("y", test::kInt64);
  sample.integers("kernel_shape", {1, 3}).integers("strides", {1, 3});
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(evaluated(sample, tensor({1, 1, 1, 6}, {1, kNan, 2, 3, 5, 4})), ElementsAre(1, 4));
}

}  // namespace
}  // namespace triptych::onnx
