// Graphs whose values a plan under bf16 stores channels last, on each available GPU and on the
// emulated one: the bits of planes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "backends/all_backends.h"
#include "core/runtime/executor.h"
#include "tests/conformance/asked_backends.h"
#include "tests/unit/cuda/channels_last_graphs.h"

namespace triptych::conformance {
namespace {

struct Results {
  std::int64_t stored = 0;  ///< values that the plan stores channels last
  std::map<std::string, Tensor> outputs;
};

Results run_on(Device& device, const Graph& graph, bool channels_last) {
  PlanOptions options;
  options.placement.contract = Contract::Bf16;
  options.channels_last = channels_last;
  StateStore states(device);
  Executor executor(make_plan(graph.clone(), {&device}, options), states);
  executor.run();
  Results results;
  results.stored = std::ranges::count_if(executor.plan().locations[0], [](const auto& location) {
    return location && location->channels_last;
  });
  for (const auto& output : graph.outputs()) {
    results.outputs.emplace(output.name, executor.output(output.name));
  }
  return results;
}

/// Compares all outputs but `except`, whose sums have another order.
void expect_bits_of_planes(const Graph& graph, const std::set<std::string>& except = {}) {
  for (const Backend* backend : all_backends()) {
    const std::string name(backend->name());
    const bool is_gpu = name.starts_with("cuda");
    if (!is_gpu || !backend->availability().available || !is_asked(name)) continue;
    SCOPED_TRACE(name);
    const auto device = backend->open({.threads = 2});
    const auto planes = run_on(*device, graph, false), last = run_on(*device, graph, true);
    EXPECT_EQ(planes.stored, 0);
    EXPECT_GT(last.stored, 0);
    for (const auto& [output, expected] : planes.outputs) {
      if (except.contains(output)) continue;
      EXPECT_TRUE(std::ranges::equal(last.outputs.at(output).bytes(), expected.bytes())) << output;
    }
  }
}

TEST(StoredOnEveryBackend, convolutions_have_the_bits_of_planes) {
  expect_bits_of_planes(cuda::patches_of_layers({2, 64, 16, 16}, 64));
  expect_bits_of_planes(cuda::thin_layers({2, 1, 12, 18}, 64));
  expect_bits_of_planes(cuda::wide_convolution({2, 64, 16, 16}, 64));
  expect_bits_of_planes(cuda::wide_convolution({1, 128, 16, 18}, 72));
}

TEST(StoredOnEveryBackend, normalisations_have_the_bits_of_planes) {
  const Shape images = {1, 40, 33, 32};
  expect_bits_of_planes(cuda::running_layer(images, false));
  expect_bits_of_planes(cuda::normalised_layer(images, true, {.x = false}));
  expect_bits_of_planes(cuda::normalised_layer(images, true, {}), {"deviation", "z"});
}

TEST(StoredOnEveryBackend, poolings_and_sums_have_the_bits_of_planes) {
  MaxPool pool;
  pool.kernel_shape = pool.strides = {2, 2};
  for (const bool is_sum : {false, true}) {
    expect_bits_of_planes(cuda::pooling_with_gradient({2, 16, 8, 10}, pool, is_sum));
  }
  expect_bits_of_planes(cuda::slices_and_sums({1, 40, 33, 32}));
}

}  // namespace
}  // namespace triptych::conformance
