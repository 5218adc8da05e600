// SPDX-License-Identifier: Apache-2.0
#include "core/graph/passes/quantize.h"

#include <gmock/gmock.h>

#include <limits>

#include "core/graph/passes/passes.h"
#include "core/ops/concat.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/pool.h"
#include "core/ops/reshape.h"
#include "tests/unit/graph/example_graphs.h"

namespace triptych::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kSide = 8;

ValueId constant(Graph& graph, const std::string& name, Shape shape, std::uint64_t seed) {
  return graph.add_constant(
      name, std::make_shared<const Tensor>(random_tensor({DType::F32, std::move(shape)}, seed)));
}

/// A U-Net of one level: "conv" with relu, "pool", "up" of two groups, "concat", "head", output
/// "y". Channel 2 of the head has no weights.
Graph small_unet(std::int64_t side = kSide) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2, 3, side, side}});
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  conv.activation = "relu";
  const auto skip =
      emit(graph, make_op(conv),
           {x, constant(graph, "w0", {4, 3, 3, 3}, 1), constant(graph, "b0", {4}, 2)}, "conv");
  MaxPool pool;
  pool.kernel_shape = pool.strides = {2, 2};
  const auto low = emit(graph, make_op(pool), {skip}, "pool");
  ConvTranspose transposed;
  transposed.strides = {2, 2};
  transposed.group = 2;
  const auto up =
      emit(graph, make_op(transposed), {low, constant(graph, "w1", {4, 3, 2, 2}, 3)}, "up");
  Concat concat;
  concat.axis = 1;
  const auto both = emit(graph, make_op(concat), {skip, up}, "concat");
  auto weight = random_tensor({DType::F32, {3, 10, 1, 1}}, 4);
  std::fill_n(weight.as<float>().begin() + 20, 10, 0.0F);
  const auto head = graph.add_constant("w2", std::make_shared<const Tensor>(std::move(weight)));
  graph.mark_output(
      "y", emit(graph, make_op(Conv{}), {both, head, constant(graph, "b2", {3}, 5)}, "head"));
  return graph;
}

std::vector<RefTensor> evaluate(const Graph& graph, const Tensor& x) {
  return evaluate_reference(graph, {{graph.find("x"), to_reference(x)}});
}

/// The largest magnitudes of all that the pass asks for, for one picture.
Ranges ranges_of(const Graph& graph, const Tensor& x) {
  const auto values = evaluate(graph, x);
  Ranges ranges;
  for (const auto& name : values_to_calibrate(graph)) {
    float largest = 0;
    for (const auto value : values[graph.find(name).index()].values) {
      largest = std::max(largest, static_cast<float>(std::abs(value)));
    }
    ranges[name] = largest;
  }
  return ranges;
}

Ranges ones(const Graph& graph) {
  Ranges ranges;
  for (const auto& name : values_to_calibrate(graph)) ranges[name] = 1;
  return ranges;
}

const Node& node_named(const Graph& graph, std::string_view name) {
  for (const auto& node : graph.nodes()) {
    if (node.name == name) return node;
  }
  throw InvalidArgument("no node " + std::string(name));
}

TEST(Quantize, asks_for_the_ranges_of_inputs_and_of_convolutions_but_the_last) {
  EXPECT_THAT(values_to_calibrate(small_unet()), UnorderedElementsAre("x", "conv", "up"));
}

TEST(Quantize, computes_nearly_the_same) {
  const auto graph = small_unet();
  const auto x = random_tensor({DType::F32, {2, 3, kSide, kSide}}, 7);
  const auto quantized = quantize(graph, ranges_of(graph, x));
  verify(quantized);
  const auto expected = evaluate(graph, x)[graph.outputs()[0].value.index()];
  const auto actual = evaluate(quantized, x)[quantized.outputs()[0].value.index()];
  ASSERT_EQ(actual.spec, expected.spec);
  double error = 0, signal = 0;
  for (std::size_t i = 0; i < actual.values.size(); ++i) {
    error += std::pow(actual.values[i] - expected.values[i], 2);
    signal += std::pow(expected.values[i], 2);
  }
  EXPECT_LT(error, 3e-4 * signal);
  // Without weights only the bias is left, and it is exact to 2^-30.
  const auto bias = to_doubles(*graph.value(graph.find("b2")).data)[2];
  EXPECT_NEAR(actual.values[2 * kSide * kSide], bias, 1e-7);
}

TEST(Quantize, leaves_no_floats_between_the_quantised_input_and_the_sums_of_the_head) {
  const auto graph = small_unet();
  const auto quantized = quantize(graph, ones(graph));
  for (const auto& node : quantized.nodes()) {
    const auto dtype = quantized.spec(node.outputs.front()).dtype;
    if (node.op->name() == "DequantizeLinear") {
      EXPECT_EQ(quantized.spec(node.inputs.front()).dtype, DType::I32);
      EXPECT_EQ(dtype, DType::F32);
    } else {
      EXPECT_EQ(dtype, node.name == "head" ? DType::I32 : DType::I8) << node.name;
    }
  }
  EXPECT_EQ(quantized.spec(quantized.find("x")).dtype, DType::F32);
}

TEST(Quantize, gives_the_operands_of_a_concat_the_largest_of_their_scales) {
  const auto graph = small_unet();
  const auto multipliers = [&](float conv, float up) {
    auto ranges = ones(graph);
    ranges["conv"] = conv;
    ranges["up"] = up;
    const auto quantized = quantize(graph, ranges);
    const auto& node = node_named(quantized, "conv");
    return to_doubles(*quantized.value(node.inputs[3]).data);
  };
  EXPECT_EQ(multipliers(2, 1), multipliers(1, 2));
  EXPECT_NE(multipliers(1, 1.5F), multipliers(1, 1));
}

TEST(Quantize, weights_take_the_whole_range_of_each_output_channel) {
  const auto graph = small_unet();
  const auto quantized = quantize(graph, ones(graph));
  const auto conv = to_doubles(*quantized.value(quantized.find("conv.weight")).data);
  for (std::size_t o = 0; o < 4; ++o) {
    double largest = 0;
    for (std::size_t i = 0; i < 27; ++i) largest = std::max(largest, std::abs(conv[27 * o + i]));
    EXPECT_EQ(largest, 127) << o;
  }
  // [4, 3, 2, 2] in two groups: output channel 3 g + j has the weights [2 g, 2 g + 1][j].
  const auto up = to_doubles(*quantized.value(quantized.find("up.weight")).data);
  for (std::size_t group = 0; group < 2; ++group) {
    for (std::size_t j = 0; j < 3; ++j) {
      double largest = 0;
      for (std::size_t c = 2 * group; c < 2 * group + 2; ++c) {
        for (std::size_t t = 0; t < 4; ++t) {
          largest = std::max(largest, std::abs(up[(3 * c + j) * 4 + t]));
        }
      }
      EXPECT_EQ(largest, 127) << group << " " << j;
    }
  }
}

TEST(Quantize, names_and_specs_of_parameters_do_not_depend_on_size_or_ranges) {
  const auto small = small_unet(), large = small_unet(2 * kSide);
  const auto a = quantize(small, ones(small));
  auto ranges = ones(large);
  ranges["conv"] = 0;
  const auto b = quantize(large, ranges);
  ASSERT_EQ(a.values_of(ValueKind::State).size(), b.values_of(ValueKind::State).size());
  for (const auto id : a.values_of(ValueKind::State)) {
    const auto& name = a.value(id).name;
    EXPECT_EQ(a.spec(id), b.spec(b.find(name))) << name;
  }
}

TEST(Quantize, dequantises_an_output_that_others_read_from_int8) {
  auto graph = small_unet();
  graph.mark_output("skip", graph.find("conv"));
  const auto x = random_tensor({DType::F32, {2, 3, kSide, kSide}}, 7);
  const auto quantized = quantize(graph, ranges_of(graph, x));
  verify(quantized);
  const auto expected = evaluate(graph, x)[graph.find("conv").index()];
  const auto actual = evaluate(quantized, x)[quantized.outputs()[1].value.index()];
  ASSERT_EQ(actual.spec, expected.spec);
  for (std::size_t i = 0; i < actual.values.size(); ++i) {
    EXPECT_NEAR(actual.values[i], expected.values[i], 0.1);
  }
}

TEST(Quantize, refuses_what_it_cannot_do_and_says_what) {
  auto graph = small_unet();
  EXPECT_THAT(
      [&] {
        quantize(graph, {{"x", 1.0F}, {"up", 1.0F}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("no range for \"conv\"")));
  auto ranges = ones(graph);
  ranges["up"] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT([&] { quantize(graph, ranges); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the range of \"up\" is nan")));
  emit(graph, make_op(Unary(UnaryKind::Sigmoid)), {graph.find("head")}, "sigmoid");
  EXPECT_THAT([&] { values_to_calibrate(graph); },
              ThrowsMessage<UnsupportedError>(HasSubstr("node \"sigmoid\" is Sigmoid")));
  const auto trained = conv_norm_relu(true);
  EXPECT_THROW(quantize(trained, {}), Error);
}

TEST(Quantize, takes_what_the_inference_passes_leave) {
  const auto graph = optimize(conv_norm_relu(true), {.inference = true});
  EXPECT_THAT(values_to_calibrate(graph), UnorderedElementsAre("x"));
  const auto quantized = freeze_states(quantize(graph, ones(graph)));
  verify(quantized);
  EXPECT_EQ(quantized.nodes().size(), 3);
}

}  // namespace
}  // namespace triptych::testing
