// Demands of a convolution on Hopper's tensor cores on the copy engine and on them, against closed
// forms.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/ops/conv.h"
#include "core/runtime/executor.h"

namespace triptych::cuda {
namespace {

/// y of a 3 x 3 convolution.
Tensor run(emulation::EmulatedDevice& device, const Shape& x, const Shape& w) {
  Graph graph;
  Conv op;
  op.pads = {1, 1, 1, 1};
  const std::vector<ValueId> inputs = {graph.add_input("x", {DType::F32, x}),
                                       graph.add_input("w", {DType::F32, w})};
  graph.mark_output("y", graph.add_node(make_op(op), inputs).front());
  PlanOptions options;
  options.placement.contract = Contract::Bf16;
  options.placement.forced_kernels["Conv"] = "hopper";
  StateStore states(device);
  Executor executor(make_plan(std::move(graph), {&device}, options), states);
  for (const auto& [name, shape] : {std::pair{"x", x}, {"w", w}}) {
    Tensor values(TensorSpec{DType::F32, shape});
    float next = -1;
    for (float& value : values.as<float>()) value = next = next > 1 ? next - 1.9F : next + 0.37F;
    executor.set_input(name, values);
  }
  executor.run();
  return executor.output("y");
}

KernelCounters counters_of(const Shape& x, const Shape& w) {
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "counted"}}});
  run(device, x, w);
  return device.kernel_counters().at("conv_hopper");
}

TEST(HopperConv, brings_a_box_of_pixels_for_each_tap_and_multiplies_it_once) {
  // Two tiles of 256 positions, 3 x 3 taps of 64 channels each. 64 of a tile's 128 rows are there.
  const auto counters = counters_of({2, 64, 16, 16}, {64, 64, 3, 3});
  EXPECT_EQ(counters.blocks, 2U);
  EXPECT_EQ(counters.bulk_bytes, 2U * 9 * (128 + 256) * 64 * sizeof(std::uint16_t));
  EXPECT_EQ(counters.matrix_products, 2U * 9 * 128 * 256 * 64 / (16 * 8 * 16));
}

TEST(HopperConv, stores_each_output_once_in_whole_sectors) {
  const auto stores =
      counters_of({2, 64, 16, 16}, {64, 64, 3, 3}).total(MemorySpace::Global, MemoryAccess::Store);
  EXPECT_EQ(stores.useful_bytes, 2U * 64 * 16 * 16 * sizeof(float));
  EXPECT_EQ(stores.sectors * 32, stores.useful_bytes);
}

TEST(HopperConv, puts_several_small_images_into_one_tile) {
  EXPECT_EQ(counters_of({4, 64, 8, 8}, {64, 64, 3, 3}).blocks, 1U);
}

TEST(HopperConv, has_the_same_bits_under_every_schedule) {
  // Three tiles of nine steps each, through a ring of four stages.
  const Shape x = {3, 64, 16, 16}, w = {64, 64, 3, 3};
  emulation::EmulatedDevice device({.threads = 1, .extra = {{"emulation", "checked"}}});
  const auto values = run(device, x, w);
  device.follow({.seed = 1, .operands = emulation::OperandReads::Earliest, .most_blocks = 1});
  EXPECT_TRUE(std::ranges::equal(run(device, x, w).bytes(), values.bytes()));
  device.follow({.seed = 2, .most_blocks = 2});
  EXPECT_TRUE(std::ranges::equal(run(device, x, w).bytes(), values.bytes()));
}

}  // namespace
}  // namespace triptych::cuda
