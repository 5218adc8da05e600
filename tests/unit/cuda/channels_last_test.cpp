// Activations stored channels last in bfloat16 on a GPU: fewer bytes, and the same bits as planes
// where bfloat16 holds the values.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/nn/training_graph.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/concat.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/pool.h"
#include "core/runtime/executor.h"
#include "tests/unit/cpu/run_kernel.h"
#include "tests/unit/cuda/channels_last_graphs.h"

namespace triptych::cuda {
namespace {

PlanOptions options_of(bool channels_last, Contract contract = Contract::Bf16) {
  PlanOptions options;
  options.placement.contract = contract;
  options.channels_last = channels_last;
  return options;
}

/// An executor of a graph on an emulated GPU.
struct Runner {
  Runner(const Graph& graph, const PlanOptions& options, const std::string& emulation = "plain")
      : device({.threads = 2, .extra = {{"emulation", emulation}}}),
        states(device),
        executor(make_plan(graph.clone(), {&device}, options), states) {
    std::uint64_t number = 0;
    for (const auto value : graph.values_of(ValueKind::Input)) {
      const auto& input = graph.value(value);
      executor.set_input(input.name, cpu::random_tensor(input.spec.shape, ++number, 0.25F, 1));
    }
  }

  std::vector<Tensor> run() {
    executor.run();
    std::vector<Tensor> results;
    for (const auto& output : executor.plan().graph.outputs()) {
      results.push_back(executor.output(output.name));
    }
    for (const auto& name : states.names()) results.push_back(states.read(name));
    return results;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& output : executor.plan().graph.outputs()) names.push_back(output.name);
    for (const auto& name : states.names()) names.push_back(name);
    return names;
  }
  std::int64_t stored() const {
    return std::ranges::count_if(executor.plan().locations[0], [](const auto& location) {
      return location && location->channels_last;
    });
  }
  std::uint64_t bytes_of(const std::string& kernel, MemoryAccess access) const {
    return device.kernel_counters().at(kernel).total(MemorySpace::Global, access).useful_bytes;
  }

  emulation::EmulatedDevice device;
  StateStore states;
  Executor executor;
};

/// `bound`: of a difference, relative to the largest expected value.
void expect_near(const Tensor& values, const Tensor& expected, float bound) {
  float largest = 0;
  for (const float value : expected.as<float>()) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < expected.as<float>().size(); ++i) {
    EXPECT_NEAR(values.as<float>()[i], expected.as<float>()[i], bound * largest) << i;
  }
}

/// For channel 0 of images.
double inverse_deviation(const Tensor& x) {
  const auto& shape = x.shape();
  const auto plane = shape[2] * shape[3];
  const auto count = static_cast<double>(shape[0] * plane);
  double sum = 0, squares = 0;
  for (const bool is_second : {false, true}) {
    for (std::int64_t i = 0; i < shape[0] * plane; ++i) {
      const double value =
          x.as<float>()[static_cast<std::size_t>(i / plane * shape[1] * plane + i % plane)];
      (is_second ? squares : sum) +=
          is_second ? (value - sum / count) * (value - sum / count) : value;
    }
  }
  return 1 / std::sqrt(squares / count);
}

/// A step of a small U-Net. Its planes have 36 elements, and 9, which are whole in no four.
Graph training_step() {
  auto config = model_preset("unet-s");
  config.base = 8;
  config.depth = 1;
  config.size = 6;
  return build_training_graph(config, {.batch = 1}).graph;
}

/// x, normalised by running statistics, through a 3 x 3 convolution.
Graph normalised_convolution(const Shape& x, std::int64_t channels) {
  Graph graph;
  std::vector<ValueId> inputs = {graph.add_input("x", {DType::F32, x})};
  for (const auto* name : {"scale", "bias", "mean", "variance"}) {
    inputs.push_back(graph.add_input(name, {DType::F32, Shape{x[1]}}));
  }
  BatchNormalization normalization;
  normalization.activation = "relu";
  const auto y = graph.add_node(make_op(normalization), inputs).front();
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  const auto w = graph.add_input("w", {DType::F32, Shape{channels, x[1], 3, 3}});
  graph.mark_output("y", graph.add_node(make_op(conv), std::vector<ValueId>{y, w}).front());
  return graph;
}

TEST(ChannelsLastOnGpu, a_training_step_has_about_the_loss_of_planes) {
  const auto graph = training_step();
  Runner planes(graph, options_of(false)), last(graph, options_of(true));
  EXPECT_EQ(planes.stored(), 0);
  // All images of eight channels, and the two halves of the gradient of the concat.
  EXPECT_EQ(last.stored(), 31);
  const auto loss = [](Runner& runner) { return runner.executor.output("loss").as<float>()[0]; };
  for (int step = 0; step < 3; ++step) {
    planes.executor.run();
    last.executor.run();
    EXPECT_NEAR(loss(last), loss(planes), 0.05 * loss(planes));
  }
}

/// A normalisation that leaves x as it is, so that it may be stored channels last.
ValueId add_identity(Graph& graph, const Shape& x) {
  std::vector<ValueId> inputs = {graph.add_input("x", {DType::F32, x})};
  for (const float value : {1.0F, 0.0F, 0.0F, 1.0F}) {
    Tensor tensor(TensorSpec{DType::F32, {x[1]}});
    std::ranges::fill(tensor.as<float>(), value);
    inputs.push_back(graph.constant(std::move(tensor)));
  }
  BatchNormalization normalization;
  normalization.epsilon = 0;
  return graph.add_node(make_op(normalization), inputs).front();
}

/// A level of a U-Net: y = normalised x, p = MaxPool(y), z = a convolution of y and of p
/// transposed.
Graph u_net_level(const Shape& x) {
  Graph graph;
  const auto y = add_identity(graph, x);
  MaxPool pool;
  pool.kernel_shape = pool.strides = {2, 2};
  const auto p = graph.emit_one(make_op(pool), {y});
  ConvTranspose up;
  up.strides = {2, 2};
  const auto w = graph.add_input("w", {DType::F32, {x[1], 16, 2, 2}});
  Concat concat;
  concat.axis = 1;
  const auto joined = graph.emit_one(make_op(concat), {y, graph.emit_one(make_op(up), {p, w})});
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  const auto v = graph.add_input("v", {DType::F32, {5, x[1] + 16, 3, 3}});
  graph.mark_output("z", graph.emit_one(make_op(conv), {joined, v}));
  MaxPoolGradient gradient;
  gradient.kernel_shape = gradient.strides = {2, 2};
  const auto dy = graph.add_input("dy", graph.spec(p));
  graph.mark_output("dx", graph.emit_one(make_op(gradient), {y, dy}));
  return graph;
}

/// Numbers that bfloat16 holds, with many ties and NaN.
Tensor rounded_numbers(const Shape& shape) {
  RandomStream random(9, 0);
  Tensor tensor(TensorSpec{DType::F32, shape});
  for (auto& value : tensor.as<float>()) {
    value = static_cast<float>(random.below(5)) - 2;
    if (random.below(50) == 0) value = std::numeric_limits<float>::quiet_NaN();
  }
  return tensor;
}

TEST(ChannelsLastOnGpu, a_level_of_a_u_net_reads_and_writes_it_throughout) {
  for (const Shape& x : {Shape{2, 24, 8, 16}, Shape{1, 40, 6, 10}}) {
    SCOPED_TRACE(to_string(x));
    const auto graph = u_net_level(x);
    Runner planes(graph, options_of(false), "counted"), last(graph, options_of(true), "counted");
    ASSERT_EQ(last.stored(), 4);
    for (auto* runner : {&planes, &last}) runner->executor.set_input("x", rounded_numbers(x));
    cpu::expect_same_bits(last.run(), planes.run());
    EXPECT_FALSE(last.device.kernel_counters().contains("round_images"));
    const auto elements = static_cast<std::uint64_t>(x.elements());
    const std::string pool = "max_pool_channels_last", up = "conv_transpose_tensor_core";
    EXPECT_EQ(last.bytes_of(pool, MemoryAccess::Load), elements * sizeof(BFloat16));
    EXPECT_EQ(last.bytes_of(pool, MemoryAccess::Store), elements / 4 * (sizeof(BFloat16) + 1));
    const auto channels = static_cast<std::uint64_t>(x[1]);
    EXPECT_EQ(last.bytes_of(up, MemoryAccess::Store), elements / channels * 16 * sizeof(BFloat16));
  }
}

TEST(ChannelsLastOnGpu, patches_that_are_tiles_are_read_and_written_in_place) {
  const auto graph = patches_of_layers({2, 64, 16, 32}, 128);
  Runner planes(graph, options_of(false)), last(graph, options_of(true), "checked");
  EXPECT_EQ(last.stored(), 3);
  cpu::expect_same_bits(last.run(), planes.run());
  Runner counted(graph, options_of(true), "counted");
  counted.run();
  const auto& counters = counted.device.kernel_counters();
  EXPECT_TRUE(counters.contains("conv_weight_gradient_hopper"));
  EXPECT_EQ(counted.bytes_of("conv_transpose_hopper", MemoryAccess::Store),
            2U * 64 * 16 * 32 * sizeof(BFloat16));
}

TEST(ChannelsLastOnGpu, layers_with_one_channel_read_and_write_the_others_once) {
  for (const std::int64_t channels : {8, 64}) {
    SCOPED_TRACE(channels);
    const Shape images = {2, 1, 12, 18};
    const auto graph = thin_layers(images, channels);
    auto others = options_of(false);
    for (const auto* op : {"Conv", "ConvTranspose", "ConvWeightGradient"}) {
      others.placement.forced_kernels[op] = "tensor-core";
    }
    Runner expected(graph, others), planes(graph, options_of(false), "checked");
    Runner last(graph, options_of(true), "checked"), counted(graph, options_of(true), "counted");
    EXPECT_EQ(last.stored(), 2);
    const auto values = expected.run();
    cpu::expect_same_bits(planes.run(), values);
    cpu::expect_same_bits(last.run(), values);
    counted.run();
    const auto bytes = static_cast<std::uint64_t>(images.elements() * channels) * sizeof(BFloat16);
    EXPECT_EQ(counted.bytes_of("conv_thin_spread", MemoryAccess::Store), 2 * bytes);
    EXPECT_GE(counted.bytes_of("conv_thin_gather", MemoryAccess::Load), bytes);
  }
}

/// Any windows: y, and dx where each element ties.
TEST(ChannelsLastOnGpu, pools_any_windows) {
  for (const auto& [side, stride, pad] : {std::tuple{3, 2, 1}, {2, 1, 0}, {2, 2, 0}}) {
    const Shape x = {2, 8, 7, 9};
    Graph graph;
    const auto y = add_identity(graph, x);
    MaxPool pool;
    pool.kernel_shape = {side, side};
    pool.strides = {stride, stride};
    pool.pads = {pad, pad, pad, pad};
    const auto p = graph.emit_one(make_op(pool), {y});
    Conv conv;
    const auto w = graph.add_input("w", {DType::F32, {3, 8, 1, 1}});
    graph.mark_output("z", graph.emit_one(make_op(conv), {p, w}));
    Runner planes(graph, options_of(false)), last(graph, options_of(true), "checked");
    ASSERT_EQ(last.stored(), 2);
    for (auto* runner : {&planes, &last}) runner->executor.set_input("x", rounded_numbers(x));
    cpu::expect_same_bits(last.run(), planes.run());
  }
}

TEST(ChannelsLastOnGpu, convolutions_on_either_tensor_core_read_it_in_place) {
  struct Case {
    Shape x;
    std::int64_t channels;
    std::string kernel;
  };
  for (const auto& [x, channels, kernel] :
       {Case{{2, 64, 16, 16}, 64, "hopper"}, Case{{2, 24, 5, 7}, 9, "tensor-core"}}) {
    SCOPED_TRACE(kernel);
    const auto graph = normalised_convolution(x, channels);
    Runner planes(graph, options_of(false), "counted"), last(graph, options_of(true), "counted");
    ASSERT_EQ(last.stored(), 1);
    EXPECT_EQ(last.executor.plan().steps.back().entry->name, kernel);
    cpu::expect_same_bits(last.run(), planes.run());
    const auto elements = static_cast<std::uint64_t>(x.elements());
    const std::string normalization = "batch_normalization_channels_last";
    EXPECT_EQ(last.bytes_of(normalization, MemoryAccess::Store), elements * sizeof(BFloat16));
    EXPECT_EQ(planes.bytes_of("round_images", MemoryAccess::Load), elements * sizeof(float));
    EXPECT_FALSE(last.device.kernel_counters().contains("round_images"));
  }
}

/// The gradient of a normalisation, read by the gradient of a convolution's weights.
Graph normalisation_gradient(const Shape& x) {
  Graph graph;
  std::vector<ValueId> inputs = {graph.add_input("x", {DType::F32, x}),
                                 graph.add_input("dy", {DType::F32, x})};
  for (const auto* name : {"scale", "mean", "deviation"}) {
    inputs.push_back(graph.add_input(name, {DType::F32, Shape{x[1]}}));
  }
  const auto outputs = graph.add_node(make_op(BatchNormalizationGradient{}), inputs);
  graph.mark_output("dscale", outputs[1]);
  graph.mark_output("dbias", outputs[2]);
  ConvWeightGradient gradient;
  gradient.kernel_shape = {1, 1};
  const auto from = graph.add_input("from", {DType::F32, Shape{x[0], 3, x[2], x[3]}});
  const std::vector<ValueId> operands = {from, outputs[0]};
  graph.mark_output("dw", graph.add_node(make_op(gradient), operands).front());
  return graph;
}

TEST(ChannelsLastOnGpu, gradients_of_weights_read_gradients_in_place) {
  for (const Shape& x : {Shape{2, 40, 4, 6}, Shape{2, 40, 3, 3}}) {
    const auto graph = normalisation_gradient(x);
    Runner planes(graph, options_of(false), "counted"), last(graph, options_of(true), "counted");
    ASSERT_EQ(last.stored(), 1);
    cpu::expect_same_bits(last.run(), planes.run());
    const auto elements = static_cast<std::uint64_t>(x.elements());
    EXPECT_EQ(last.bytes_of("batch_normalization_gradient_channels_last", MemoryAccess::Store),
              elements * sizeof(BFloat16));
    // Only the other operand is still rounded.
    EXPECT_EQ(last.bytes_of("round_images", MemoryAccess::Load), elements / 40 * 3 * sizeof(float));
  }
}

/// Planes of several blocks of the tree, of one that is not whole, and of a few lanes.
const Shape kShapes[] = {{1, 40, 33, 32}, {3, 8, 7, 9}, {1, 72, 3, 5}};

/// Outputs and states with the deviation of elements that are stored channels last: it is a sum in
/// another order.
bool is_of_deviation(const std::string& name) {
  return name == "deviation" || name == "variance" || name == "y" || name == "z";
}

TEST(ChannelsLastOnGpu, statistics_of_stored_values_have_the_bits_of_planes) {
  for (const auto& shape : kShapes) {
    for (const int choice : {0, 1, 2, 3, 4, 5, 6, 7, 15}) {
      SCOPED_TRACE(testing::Message() << to_string(shape) << ", " << choice);
      const StoredOperands stored = {(choice & 1) != 0, (choice & 2) != 0, (choice & 4) != 0};
      const bool relu = choice > 7 || choice % 2 == 0;
      const auto graph = normalised_layer(shape, relu, stored);
      Runner planes(graph, options_of(false)), last(graph, options_of(true), "checked");
      EXPECT_EQ(last.stored(), stored.x + stored.dy + 2 * stored.results);
      const auto names = last.names();
      const auto values = last.run(), expected = planes.run();
      for (std::size_t i = 0; i < values.size(); ++i) {
        SCOPED_TRACE(names[i]);
        if (!stored.x || !is_of_deviation(names[i])) {
          EXPECT_TRUE(std::ranges::equal(values[i].bytes(), expected[i].bytes()));
        } else if (names[i] == "z") {  // of rounded elements
          expect_near(values[i], expected[i], 0.02F);
        } else {
          expect_near(values[i], expected[i], 1e-6F);
        }
      }
    }
  }
}

/// Elements far from zero, and a first one that is far from the others.
TEST(ChannelsLastOnGpu, deviations_of_stored_values_keep_their_digits) {
  for (const float first : {250.0F, -250.0F}) {
    SCOPED_TRACE(first);
    const Shape shape = {2, 8, 33, 32};
    auto elements = integers(shape, 4, 1);
    for (auto& element : elements.as<float>()) element += 250;
    elements.as<float>()[0] = first;
    Graph graph;
    Level level(graph);
    BatchNormalization normalization;
    normalization.training_mode = true;
    normalization.epsilon = 0;
    std::vector<ValueId> inputs = {level.copied(elements.clone()), level.vector(shape[1]),
                                   level.vector(shape[1])};
    for (const auto* name : {"mean", "variance"}) {
      inputs.push_back(graph.add_state(name, cpu::random_tensor({shape[1]}, 3, 0.5F, 1)));
    }
    const auto outputs = graph.add_node(make_op(normalization), inputs);
    graph.mark_output("deviation", outputs[4]);
    Runner last(graph, options_of(true));
    ASSERT_EQ(last.stored(), 2);  // x and y
    const auto results = last.run();
    EXPECT_NEAR(results[0].as<float>()[0], inverse_deviation(elements), 1e-5);
  }
}

TEST(ChannelsLastOnGpu, statistics_of_stored_values_read_them_once) {
  const Shape shape = {1, 40, 33, 32};
  const auto graph = normalised_layer(shape, true, {});
  Runner last(graph, options_of(true), "counted");
  last.run();
  EXPECT_EQ(last.bytes_of("batch_normalization_moments", MemoryAccess::Load),
            static_cast<std::uint64_t>(shape.elements()) * sizeof(BFloat16));
}

TEST(ChannelsLastOnGpu, running_statistics_of_stored_values_have_the_bits_of_planes) {
  for (const auto& shape : kShapes) {
    for (const bool y_is_output : {false, true}) {
      const auto graph = running_layer(shape, y_is_output);
      Runner planes(graph, options_of(false)), last(graph, options_of(true), "checked");
      EXPECT_EQ(last.stored(), y_is_output ? 1 : 2);
      cpu::expect_same_bits(last.run(), planes.run());
    }
  }
}

TEST(ChannelsLastOnGpu, slices_sums_and_means_of_stored_values_have_the_bits_of_planes) {
  for (const auto& shape : kShapes) {
    SCOPED_TRACE(to_string(shape));
    const auto graph = slices_and_sums(shape);
    Runner planes(graph, options_of(false)), last(graph, options_of(true), "checked");
    // The whole, its slices, the other operand and the sum.
    EXPECT_EQ(last.stored(), 5);
    cpu::expect_same_bits(last.run(), planes.run());
  }
}

TEST(ChannelsLastOnGpu, gradients_of_poolings_add_another_one_in_their_pass) {
  const Shape x = {2, 16, 8, 8};
  MaxPool pool;
  pool.kernel_shape = pool.strides = {2, 2};
  Runner last(pooling_with_gradient(x, pool, true), options_of(true), "counted");
  last.run();
  EXPECT_FALSE(last.device.kernel_counters().contains("add_pieces"));
  const auto elements = static_cast<std::uint64_t>(x.elements()), bytes = 2 * elements;
  EXPECT_EQ(last.bytes_of("max_pool_spread", MemoryAccess::Load),
            bytes + bytes / 4 + elements / 4);  // the other gradient, dy and the index
  EXPECT_EQ(last.bytes_of("max_pool_spread", MemoryAccess::Store), bytes);
}

TEST(ChannelsLastOnGpu, slices_that_are_not_aligned_are_copied) {
  Graph graph;
  Level level(graph);
  const auto whole = level.convolved({2, 24, 4, 4});
  graph.mark_output("y", level.convolve(level.slice(whole, 4, 20), 3));
  Runner planes(graph, options_of(false)), last(graph, options_of(true), "checked");
  EXPECT_EQ(last.stored(), 0);
  cpu::expect_same_bits(last.run(), planes.run());
}

TEST(ChannelsLastOnGpu, gradients_of_poolings_have_the_bits_of_planes) {
  for (const auto& [side, stride, pad] : {std::tuple{3, 2, 1}, {2, 1, 0}, {2, 2, 0}}) {
    for (const Shape& x : {Shape{2, 16, 8, 8}, Shape{1, 40, 7, 9}, Shape{1, 8, 6, 10}}) {
      SCOPED_TRACE(testing::Message() << side << " by " << stride << " of " << to_string(x));
      MaxPool pool;
      pool.kernel_shape = {side, side};
      pool.strides = {stride, stride};
      pool.pads = {pad, pad, pad, pad};
      for (const bool is_sum : {false, true}) {
        const auto graph = pooling_with_gradient(x, pool, is_sum);
        Runner planes(graph, options_of(false)), last(graph, options_of(true), "checked");
        EXPECT_EQ(last.stored(), is_sum ? 5 : 4);
        cpu::expect_same_bits(last.run(), planes.run());
      }
    }
  }
}

/// Tiles of 256 positions, and of 512 for 64 channels. Blocks divide the channels of the last two.
TEST(ChannelsLastOnGpu, hopper_writes_it) {
  struct Case {
    Shape x;
    std::int64_t channels;
  };
  for (const auto& [x, channels] : {Case{{1, 64, 16, 16}, 64},
                                    {{3, 64, 9, 19}, 200},
                                    {{20, 64, 4, 6}, 72},
                                    {{2, 64, 16, 16}, 64},
                                    {{5, 64, 12, 20}, 64},
                                    {{1, 128, 16, 18}, 72},
                                    {{1, 128, 17, 17}, 64}}) {
    SCOPED_TRACE(testing::Message() << channels << " of " << to_string(x));
    const auto graph = wide_convolution(x, channels);
    Runner planes(graph, options_of(false)), last(graph, options_of(true), "checked");
    ASSERT_EQ(last.executor.plan().steps.front().entry->name, "hopper");
    EXPECT_EQ(last.stored(), 1);
    cpu::expect_same_bits(last.run(), planes.run());
  }
}

TEST(ChannelsLastOnGpu, hopper_has_twice_as_many_positions_in_a_tile_of_64_channels) {
  for (const std::uint64_t channels : {64, 128}) {
    const auto graph = wide_convolution({2, 64, 16, 16}, static_cast<std::int64_t>(channels));
    Runner runner(graph, options_of(true), "counted");
    runner.run();
    const auto counters = runner.device.kernel_counters().at("conv_hopper");
    const std::uint64_t tiles = channels / 64, positions = 512 / tiles;
    EXPECT_EQ(counters.blocks, tiles);
    EXPECT_EQ(counters.bulk_bytes, tiles * 9 * (channels + positions) * 64 * sizeof(BFloat16));
    EXPECT_EQ(counters.matrix_products, tiles * 9 * channels * positions * 64 / (16 * 8 * 16));
    EXPECT_EQ(runner.bytes_of("conv_hopper", MemoryAccess::Store),
              512 * channels * sizeof(BFloat16));
  }
}

TEST(ChannelsLastOnGpu, other_channels_and_contracts_keep_planes) {
  const auto stored = [](std::int64_t channels, Contract contract) {
    const auto graph = normalised_convolution({1, channels, 4, 4}, 8);
    return Runner(graph, options_of(true, contract)).stored();
  };
  EXPECT_EQ(stored(8, Contract::Bf16), 1);
  EXPECT_EQ(stored(12, Contract::Bf16), 0) << "pieces of eight channels";
  EXPECT_EQ(stored(8, Contract::F32), 0);
  EXPECT_EQ(stored(8, Contract::Bf16Exact), 0);
}

}  // namespace
}  // namespace triptych::cuda
