// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/node_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/all_backends.h"
#include "core/base/error.h"
#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "core/ops/conv.h"
#include "core/ops/unary.h"

namespace triptych::machines {
namespace {

using testing::HasSubstr;

Figure figure(double value) { return {value, TimeKind::Recorded, "a test"}; }

/// 1 TFLOP/s, 100 GB/s of memory behind a cache of 1 MB at 1 TB/s and a buffer that is none.
MachineFigures simple_machine() {
  MachineFigures machine;
  machine.name = "simple";
  machine.kind = "cpu";
  machine.peaks["f32"] = figure(1e12);
  machine.levels = {{"shared memory", figure(1e9), figure(1e13), {}},
                    {"L2", figure(1e6), figure(1e12), {}},
                    {"memory", {}, figure(1e11), figure(0.9e11)}};
  return machine;
}

TEST(NodeTimes, bound_is_the_slower_of_arithmetic_and_memory) {
  const NodeTimes times(simple_machine(), {});
  EXPECT_DOUBLE_EQ(times.bound({.flops = 1e9, .bytes = 1e7}), 1e-3) << "arithmetic";
  EXPECT_DOUBLE_EQ(times.bound({.flops = 1e6, .bytes = 1e8}), 1e-3) << "memory";
  EXPECT_DOUBLE_EQ(times.bound({.flops = 1, .bytes = 1e6}), 1e-6) << "what fits the cache";
  EXPECT_DOUBLE_EQ(times.bound({.flops = 1, .bytes = 1.1e6}), 1.1e-5) << "and what does not";
}

TEST(NodeTimes, ranks_share_rates_and_caches) {
  Assumptions two;
  two.ranks = 2;
  const NodeTimes times(simple_machine(), two);
  EXPECT_DOUBLE_EQ(times.bound({.flops = 1e9, .bytes = 1e7}), 2e-3);
  EXPECT_DOUBLE_EQ(times.bound({.flops = 1, .bytes = 0.5e6}), 1e-6);
  EXPECT_DOUBLE_EQ(times.bound({.flops = 1, .bytes = 0.6e6}), 1.2e-5) << "half of the cache";
}

TEST(NodeTimes, are_launch_and_bound_over_what_is_assumed_of_a_machine_without_a_table) {
  auto machine = simple_machine();
  Assumptions assumed;
  assumed.product_fraction = 0.5;
  assumed.other_fraction = 0.25;
  const Cost cost = {.flops = 1e9, .bytes = 1e7};
  const Conv conv;
  const Unary relu(UnaryKind::Relu);
  EXPECT_DOUBLE_EQ(NodeTimes(machine, assumed).time(conv, "gemm", cost).seconds, 2e-3);
  EXPECT_DOUBLE_EQ(NodeTimes(machine, assumed).time(relu, "simd", cost).seconds, 4e-3);
  EXPECT_EQ(NodeTimes(machine, assumed).time(conv, "gemm", cost).kind, TimeKind::Modelled);
  machine.kind = "gpu";
  EXPECT_DOUBLE_EQ(NodeTimes(machine, assumed).time(conv, "gemm", cost).seconds, 2e-3 + 8e-6);
  machine.launch = figure(1e-6);
  EXPECT_DOUBLE_EQ(NodeTimes(machine, assumed).time(conv, "gemm", cost).seconds, 2e-3 + 1e-6);
}

TEST(NodeTimes, take_what_was_measured_of_the_kernel_then_of_the_operator) {
  auto machine = simple_machine();
  EfficiencyTable one = {.ranks = 1, .source = "a test", .classes = {}};
  one.classes["Conv/gemm"] = {{1e-4, 100, 0.4}, {1e-2, 100, 0.9}};
  one.classes["Conv/winograd-4x4"] = {{1e-3, 100, 2}};
  auto two = one;
  two.ranks = two.busy = 2;
  two.classes["Conv/winograd-4x4"] = {{1e-3, 100, 1}};
  auto alone = two;
  alone.busy = 1;
  alone.classes["Conv/winograd-4x4"] = {{1e-3, 100, 4}};
  machine.efficiencies = {one, alone, two};
  const Cost cost = {.flops = 1e9, .bytes = 1e7};  // 1 ms at the roofline
  const NodeTimes times(machine, {});
  const Conv conv;
  EXPECT_DOUBLE_EQ(times.time(conv, "winograd-4x4", cost).seconds, 0.5e-3);
  EXPECT_NEAR(times.time(conv, "gemm", cost).seconds, 1e-3 / 0.6, 1e-9) << "half way, by factors";
  EXPECT_NEAR(times.time(conv, "unknown", cost).seconds, 1e-3 / 1.3, 1e-9) << "the mean of both";
  EXPECT_DOUBLE_EQ(times.time(Unary(UnaryKind::Relu), "simd", cost).seconds, 1e-3 / 0.75);
  Assumptions shared;
  shared.ranks = 2;
  EXPECT_DOUBLE_EQ(NodeTimes(machine, shared).time(conv, "winograd-4x4", cost).seconds, 2e-3);
  shared.busy = 1;
  EXPECT_DOUBLE_EQ(NodeTimes(machine, shared).time(conv, "winograd-4x4", cost).seconds, 0.5e-3)
      << "the other rank waits";
}

TEST(NodeTimes, refuse_a_format_that_the_machine_has_no_peak_of) {
  Assumptions bf16;
  bf16.format = format_of(Contract::Bf16Exact);
  try {
    const NodeTimes times(simple_machine(), bf16);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("simple states no peak of bf16; it has f32"));
  }
  Assumptions none;
  none.product_fraction = 0;
  EXPECT_THROW(NodeTimes(simple_machine(), none), InvalidArgument);
}

TEST(NodeTimes, of_a_plan_are_those_of_its_steps_that_run) {
  auto model = model_preset("unet-s");
  const auto device = open_device("cpu", {.threads = 1});
  auto graph = optimize(build_training_graph(model, {.batch = 1}).graph, {});
  const auto plan = make_plan(std::move(graph), {device.get()});
  for (const auto& name : published_machines()) {
    Assumptions assumed;
    const auto machine = find_figures(name);
    if (!machine.peaks.contains("f32")) assumed.format = machine.peaks.begin()->first;
    const NodeTimes times(machine, assumed);
    double sum = 0;
    int free = 0;
    for (const auto& step : plan.steps) {
      const double seconds = times.time(plan, step).seconds;
      EXPECT_EQ(seconds == 0, step.entry == nullptr) << name;
      free += seconds == 0 ? 1 : 0;
      sum += seconds;
    }
    EXPECT_GT(free, 0) << "views and concats in place";
    EXPECT_DOUBLE_EQ(times.time(plan).seconds, sum) << name;
    EXPECT_GT(sum, 1e-6) << name;
    EXPECT_LT(sum, 0.1) << name;
  }
}

TEST(Points, count_the_more_the_nearer_they_are) {
  const std::vector<Efficiency> points = {{1e-3, 8, 0.5}, {1e-3, 128, 2}, {1, 8, 0.125}};
  EXPECT_NEAR(interpolate(points, 1e-3, 8), 0.5, 0.01);
  EXPECT_NEAR(interpolate(points, 1e-3, 128), 2, 0.01);
  EXPECT_NEAR(interpolate({points[0], points[1]}, 1e-3, 32), 1, 1e-9) << "half way, by factors";
  EXPECT_DOUBLE_EQ(interpolate({points[0]}, 5, 5), 0.5);
  const double far = interpolate(points, 1e-3, 1e9);
  EXPECT_GT(far, 0.125);
  EXPECT_LT(far, 2) << "never beyond what was measured";
  EXPECT_GT(interpolate({{1e-3, 0, 0.5}}, 1e-3, 0), 0) << "what computes nothing";
}

}  // namespace
}  // namespace triptych::machines
