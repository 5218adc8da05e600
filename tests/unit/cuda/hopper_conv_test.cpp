// Demands of a convolution on Hopper's tensor cores on the copy engine and on them, against closed
// forms.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/runtime/executor.h"
#include "tests/unit/cpu/run_kernel.h"
#include "tests/unit/cuda/channels_last_graphs.h"

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
  // Three tiles of nine steps each, through a ring of four stages, and one that 18 blocks divide.
  for (const auto& [images, channels] : {std::pair{3, 64}, {1, 128}}) {
    const Shape x = {images, channels, 16, 16}, w = {64, channels, 3, 3};
    emulation::EmulatedDevice device({.threads = 1, .extra = {{"emulation", "checked"}}});
    const auto values = run(device, x, w);
    device.follow({.seed = 1, .operands = emulation::OperandReads::Earliest, .most_blocks = 1});
    EXPECT_TRUE(std::ranges::equal(run(device, x, w).bytes(), values.bytes()));
    device.follow({.seed = 2, .most_blocks = 2});
    EXPECT_TRUE(std::ranges::equal(run(device, x, w).bytes(), values.bytes()));
  }
}

/// Inputs of a convolution of patches of `kernel` that are tiles, or of a transposed one. x: of its
/// input. With a bias.
template <class Op>
void expect_patches_as_other_tensor_cores(const Shape& x, const Shape& w, std::int64_t channels) {
  SCOPED_TRACE(to_string(x));
  Op op;
  op.strides = {w[2], w[3]};
  if constexpr (std::is_same_v<Op, Conv>) op.activation = "relu";
  std::vector<Tensor> inputs;
  inputs.push_back(integers(x, 1, 3));
  inputs.push_back(integers(w, 2, 3));
  inputs.push_back(integers({channels}, 3, 9));
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "checked"}}});
  const auto by = [&](std::string_view kernel) {
    return cpu::run_kernel_on(device, op, inputs, {.contract = Contract::Bf16, .kernel = kernel});
  };
  cpu::expect_same_bits(by("hopper"), by("tensor-core"));
}

TEST(HopperConv, reads_patches_that_are_tiles) {
  expect_patches_as_other_tensor_cores<Conv>({3, 64, 16, 32}, {128, 64, 2, 2}, 128);
  expect_patches_as_other_tensor_cores<Conv>({1, 128, 6, 256}, {64, 128, 3, 2}, 64);
  // Divided among blocks.
  expect_patches_as_other_tensor_cores<Conv>({1, 256, 32, 32}, {72, 256, 2, 2}, 72);
}

TEST(HopperConv, writes_patches_that_are_tiles) {
  expect_patches_as_other_tensor_cores<ConvTranspose>({3, 64, 8, 16}, {64, 40, 2, 2}, 40);
  expect_patches_as_other_tensor_cores<ConvTranspose>({1, 128, 3, 128}, {128, 64, 2, 3}, 64);
}

TEST(HopperConvShares, have_the_sums_of_other_tensor_cores) {
  // 65 steps, shared by 33 blocks, so that one is behind the last tap. Its zeros must not meet the
  // infinity.
  Conv op;
  op.pads = {6, 2, 6, 2};
  op.activation = "relu";
  const Shape x = {1, 64, 16, 16}, w = {64, 64, 13, 5};
  std::vector<Tensor> inputs;
  inputs.push_back(integers(x, 1, 3));
  inputs.push_back(integers(w, 2, 3));
  inputs.push_back(integers({w[0]}, 3, 9));
  inputs[0].as<float>()[40] = std::numeric_limits<float>::infinity();
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "checked"}}});
  const auto by = [&](std::string_view kernel) {
    return cpu::run_kernel_on(device, op, inputs, {.contract = Contract::Bf16, .kernel = kernel});
  };
  cpu::expect_same_bits(by("hopper"), by("tensor-core"));
}

TEST(HopperConvShares, bring_each_box_once_and_leave_their_sums) {
  // One tile of 18 steps, by as many blocks.
  const Shape x = {1, 128, 16, 16}, w = {64, 128, 3, 3};
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "counted"}}});
  run(device, x, w);
  const auto counters = device.kernel_counters().at("conv_hopper");
  EXPECT_EQ(counters.blocks, 18U);
  EXPECT_EQ(counters.bulk_bytes, 18U * (128 + 256) * 64 * sizeof(BFloat16));
  const auto sums = 18U * 64 * 256 * sizeof(float);
  EXPECT_EQ(counters.total(MemorySpace::Global, MemoryAccess::Store).useful_bytes, sums);
  const auto added = device.kernel_counters().at("add_conv_shares");
  EXPECT_EQ(added.total(MemorySpace::Global, MemoryAccess::Load).useful_bytes, sums);
  EXPECT_EQ(added.total(MemorySpace::Global, MemoryAccess::Store).useful_bytes, sums / 18);
}

}  // namespace
}  // namespace triptych::cuda
