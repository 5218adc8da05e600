// Kernels that write channels last, which only plans of whole graphs launch: compiled by nvcc they
// have the bits of the emulation.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "backends/all_backends.h"
#include "core/nn/training_graph.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/conv.h"
#include "core/ops/pool.h"
#include "core/runtime/executor.h"
#include "tests/unit/cpu/run_kernel.h"
#include "tests/unit/cuda/channels_last_graphs.h"

namespace triptych::ptx {
namespace {

/// Outputs of a run of the graph, and then its states.
std::vector<Tensor> run_on(const std::string& device_name, const Graph& graph) {
  const auto device = open_device(device_name, {.threads = 1});
  PlanOptions options;
  options.placement.contract = Contract::Bf16;
  options.channels_last = true;
  StateStore states(*device);
  Executor executor(make_plan(graph.clone(), {device.get()}, options), states);
  std::uint64_t number = 0;
  for (const auto value : graph.values_of(ValueKind::Input)) {
    const auto& input = graph.value(value);
    executor.set_input(input.name, cpu::random_tensor(input.spec.shape, ++number, 0.25F, 1));
  }
  executor.run();
  std::vector<Tensor> results;
  for (const auto& output : graph.outputs()) results.push_back(executor.output(output.name));
  for (const auto& name : states.names()) results.push_back(states.read(name));
  return results;
}

void expect_bits_of_emulation(const Graph& graph) {
  cpu::expect_same_bits(run_on("cuda", graph), run_on("cuda-emulated", graph));
}

/// Planes that are whole in accesses of four elements, and others.
TEST(CompiledChannelsLast, a_training_step_has_the_bits_of_the_emulation) {
  for (const int size : {6, 8}) {
    SCOPED_TRACE(size);
    auto config = model_preset("unet-s");
    config.base = 8;
    config.depth = 1;
    config.size = size;
    expect_bits_of_emulation(build_training_graph(config, {.batch = 1}).graph);
  }
}

ValueId convolve(Graph& graph, const std::string& weights, ValueId x, Shape shape) {
  Conv conv;
  conv.pads = {shape[2] / 2, shape[3] / 2, shape[2] / 2, shape[3] / 2};
  const auto w = graph.add_input(weights, {DType::F32, std::move(shape)});
  return graph.emit_one(make_op(conv), {x, w});
}

/// x, normalised by running statistics, pooled, and convolved twice; the first convolution divides
/// its products among blocks.
Graph pooled_level(const Shape& x, const MaxPool& pool, bool has_gradient) {
  Graph graph;
  std::vector<ValueId> inputs = {graph.add_input("x", {DType::F32, x})};
  for (const auto* name : {"scale", "bias", "mean", "variance"}) {
    inputs.push_back(graph.add_input(name, {DType::F32, Shape{x[1]}}));
  }
  const auto y = graph.add_node(make_op(BatchNormalization{}), inputs).front();
  const auto p = graph.emit_one(make_op(pool), {y});
  const auto z = convolve(graph, "w", p, {8, x[1], 3, 3});
  graph.mark_output("z", convolve(graph, "v", z, {3, 8, 1, 1}));
  if (has_gradient) {
    MaxPoolGradient gradient;
    static_cast<WindowAttributes&>(gradient) = pool;
    const auto dy = graph.add_input("dy", graph.spec(p));
    graph.mark_output("dx", graph.emit_one(make_op(gradient), {y, dy}));
  }
  return graph;
}

TEST(CompiledChannelsLast, poolings_have_the_bits_of_the_emulation) {
  for (const auto& [window, pad] : {std::tuple{2, 0}, {3, 1}}) {
    for (const int side : {6, 7, 8}) {
      for (const bool has_gradient : {false, true}) {
        SCOPED_TRACE(testing::Message() << window << " of " << side << ", " << has_gradient);
        MaxPool pool;
        pool.kernel_shape = {window, window};
        pool.strides = {2, 2};
        pool.pads = {pad, pad, pad, pad};
        expect_bits_of_emulation(pooled_level({1, 136, side, side}, pool, has_gradient));
      }
    }
  }
}

TEST(CompiledChannelsLast, layers_have_the_bits_of_the_emulation) {
  for (const Shape& shape : {Shape{1, 40, 5, 8}, Shape{1, 40, 5, 7}}) {
    SCOPED_TRACE(to_string(shape));
    for (const bool y_is_output : {false, true}) {
      expect_bits_of_emulation(cuda::running_layer(shape, y_is_output));
      for (int stored = 0; stored < 4; ++stored) {
        expect_bits_of_emulation(cuda::normalised_layer(
            shape, y_is_output, {(stored & 1) != 0, (stored & 2) != 0, !y_is_output}));
      }
    }
    expect_bits_of_emulation(cuda::slices_and_sums(shape));
  }
  expect_bits_of_emulation(cuda::slices_and_sums({2, 24, 24, 23}));  // sums in two blocks
  expect_bits_of_emulation(cuda::wide_convolution({1, 64, 16, 17}, 72));
  expect_bits_of_emulation(cuda::wide_convolution({3, 64, 9, 19}, 200));  // whole tiles, too
  expect_bits_of_emulation(cuda::wide_convolution({2, 64, 16, 17}, 64));  // wide ones
  for (const std::int64_t width : {16, 17}) {                             // divided products
    expect_bits_of_emulation(cuda::wide_convolution({1, 128, 17, width}, 72));
  }
}

TEST(CompiledChannelsLast, layers_with_one_channel_have_the_bits_of_the_emulation) {
  expect_bits_of_emulation(cuda::thin_layers({1, 1, 6, 10}, 16));
}

TEST(CompiledChannelsLast, patches_that_are_tiles_have_the_bits_of_the_emulation) {
  expect_bits_of_emulation(cuda::patches_of_layers({2, 64, 16, 16}, 64));
}

TEST(CompiledChannelsLast, gradients_of_poolings_have_the_bits_of_the_emulation) {
  for (const auto& [window, side] : {std::tuple{2, 6}, {2, 8}, {3, 7}}) {
    MaxPool pool;
    pool.kernel_shape = {window, window};
    pool.strides = {2, 2};
    for (const bool is_sum : {false, true}) {
      expect_bits_of_emulation(cuda::pooling_with_gradient({1, 40, side, side}, pool, is_sum));
    }
  }
}

}  // namespace
}  // namespace triptych::ptx
