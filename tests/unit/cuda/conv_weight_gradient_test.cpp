// The weight gradient of a convolution on the CUDA cores by either of its tiles.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/ops/conv.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cuda {
namespace {

TEST(ConvWeightGradient, has_the_same_bits_by_either_tile) {
  ConvWeightGradient op;
  op.kernel_shape = {3, 3};
  op.pads = {1, 1, 1, 1};
  op.strides = {1, 1};
  op.dilations = {1, 1};
  std::vector<Tensor> inputs;
  inputs.push_back(cpu::random_tensor({2, 8, 5, 37}, 1));
  inputs.push_back(cpu::random_tensor({2, 66, 5, 37}, 2));
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "counted"}}});
  const cpu::RunOptions options = {.contract = Contract::Bf16Exact, .kernel = "implicit"};
  // Rows of 66 and columns of 8 * 9, by 16 each.
  const auto small = cpu::run_kernel_on(device, op, inputs, options);
  EXPECT_EQ(device.kernel_counters().at("conv_weight_gradient").blocks, 5U * 5);
  // A GPU of one multiprocessor is filled by one large tile, or by 64 each.
  device.follow({.most_blocks = 1});
  const auto before = device.kernel_counters().at("conv_weight_gradient").blocks;
  cpu::expect_same_bits(cpu::run_kernel_on(device, op, inputs, options), small);
  EXPECT_EQ(device.kernel_counters().at("conv_weight_gradient").blocks - before, 2U * 2);
}

}  // namespace
}  // namespace triptych::cuda
