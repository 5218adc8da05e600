// The weight gradient of a convolution on Hopper's tensor cores: its demands on the copy engine and
// on them, and its sums, which integers make exact.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/base/error.h"
#include "core/ops/conv.h"
#include "tests/unit/cpu/run_kernel.h"
#include "tests/unit/cuda/channels_last_graphs.h"

namespace triptych::cuda {
namespace {

/// dw of a convolution with a square kernel.
struct Layer {
  Shape x, dy;
  std::int64_t side, pad, dilation, stride = 1;

  std::vector<Tensor> by(emulation::EmulatedDevice& device, std::string_view kernel) const {
    ConvWeightGradient op;
    op.kernel_shape = {side, side};
    op.pads = {pad, pad, pad, pad};
    op.strides = {stride, stride};
    op.dilations = {dilation, dilation};
    std::vector<Tensor> inputs;
    inputs.push_back(integers(x, 1, 3));
    inputs.push_back(integers(dy, 2, 3));
    const cpu::RunOptions options = {.contract = Contract::Bf16, .kernel = kernel};
    return cpu::run_kernel_on(device, op, inputs, options);
  }
};
void PrintTo(const Layer& layer, std::ostream* to) { *to << to_string(layer.x); }

emulation::EmulatedDevice device_in(const std::string& mode) {
  return emulation::EmulatedDevice({.threads = 2, .extra = {{"emulation", mode}}});
}

class HopperWeightGradient : public testing::TestWithParam<Layer> {};
INSTANTIATE_TEST_SUITE_P(
    Each, HopperWeightGradient,
    testing::Values(Layer{{1, 64, 8, 8}, {1, 64, 8, 8}, 1, 0, 1},       // one step
                    Layer{{2, 64, 16, 16}, {2, 64, 16, 16}, 3, 1, 1},   // divided among blocks
                    Layer{{2, 128, 10, 18}, {2, 192, 8, 16}, 3, 0, 1},  // rows that are not there
                    Layer{{1, 192, 6, 36}, {1, 64, 2, 32}, 3, 0, 2},    // wide boxes, dilated
                    Layer{{4, 64, 4, 4}, {4, 128, 4, 4}, 3, 1, 1},      // four images in a box
                    Layer{{65, 64, 8, 8}, {65, 64, 8, 8}, 1, 0, 1},     // a step behind the last
                    Layer{
                        {2, 64, 16, 32}, {2, 192, 8, 16}, 2, 0, 1, 2},  // patches, two rows at once
                    Layer{{1, 128, 6, 192}, {1, 64, 2, 64}, 3, 0, 1, 3}));  // in wide boxes

TEST_P(HopperWeightGradient, has_the_sums_of_other_tensor_cores) {
  auto device = device_in("plain");
  cpu::expect_same_bits(GetParam().by(device, "hopper"), GetParam().by(device, "tensor-core"));
}

TEST(HopperWeightGradientOrder, has_the_same_bits_under_every_schedule) {
  // A ring of three stages, and of four.
  for (const std::int64_t channels : {64, 128}) {
    const Layer layer = {{1, 64, 16, 16}, {1, channels, 16, 16}, 3, 1, 1};
    auto device = device_in("checked");
    const auto values = layer.by(device, "hopper");
    for (const auto operands :
         {emulation::OperandReads::Earliest, emulation::OperandReads::Latest}) {
      device.follow({.seed = 1, .operands = operands, .most_blocks = 1});
      cpu::expect_same_bits(layer.by(device, "hopper"), values);
    }
  }
}

TEST(HopperWeightGradientTraffic, brings_each_box_of_a_tile_and_stores_its_sums_once) {
  // 16 boxes of 64 positions, divided among as many blocks. 576 columns.
  struct Case {
    std::int64_t channels;
    std::uint64_t tiles, rows, columns;
  };
  for (const auto& [channels, tiles, rows, columns] : {Case{128, 3, 128, 256}, {64, 2, 64, 512}}) {
    SCOPED_TRACE(channels);
    const Layer layer = {{4, 64, 16, 16}, {4, channels, 16, 16}, 3, 1, 1};
    auto device = device_in("counted");
    layer.by(device, "hopper");
    const auto counters = device.kernel_counters().at("conv_weight_gradient_hopper");
    EXPECT_EQ(counters.blocks, tiles * 16);
    EXPECT_EQ(counters.bulk_bytes, tiles * 16 * (rows + columns) * 64 * sizeof(BFloat16));
    EXPECT_EQ(counters.matrix_products, tiles * 16 * rows * columns * 64 / (16 * 8 * 16));
    const auto stores = counters.total(MemorySpace::Global, MemoryAccess::Store);
    EXPECT_EQ(stores.useful_bytes, 16 * rows * 9 * 64 * sizeof(float));
    EXPECT_EQ(stores.sectors * 32, stores.useful_bytes);
  }
}

TEST(HopperWeightGradientTraffic, images_that_boxes_do_not_cover_are_refused) {
  auto device = device_in("plain");
  const auto reason_of = [&](const Layer& layer) -> std::string {
    try {
      layer.by(device, "hopper");
    } catch (const UnsupportedError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_NE(reason_of({{1, 64, 9, 9}, {1, 64, 9, 9}, 3, 1, 1}).find("cover exactly"),
            std::string::npos);
  EXPECT_NE(reason_of({{1, 72, 8, 8}, {1, 64, 8, 8}, 3, 1, 1}).find("multiples of 64 channels"),
            std::string::npos);
}

}  // namespace
}  // namespace triptych::cuda
