// Memory-bound kernels move 16 bytes per access where rows and addresses allow it: their requests
// against closed forms, and the same bits as by single elements.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backends/cuda/emulation/counters.h"
#include "backends/cuda/emulation/emulated_device.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/conv.h"
#include "core/ops/losses.h"
#include "core/ops/optimizers.h"
#include "core/ops/pool.h"
#include "core/ops/reduce.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cuda {
namespace {

using emulation::Access;
using emulation::Space;

/// One run of an operator on random numbers, counted.
struct Counted {
  Counted(const Op& op, const std::vector<TensorSpec>& specs, std::int64_t gap = 0,
          Contract contract = Contract::F32)
      : device({.threads = 2, .extra = {{"emulation", "counted"}}}) {
    std::vector<Tensor> inputs;
    for (std::uint64_t i = 0; i < specs.size(); ++i) {
      inputs.push_back(specs[i].dtype == DType::F32
                           ? cpu::random_tensor(specs[i].shape, i, 0.25F, 1)
                           : Tensor(specs[i]));
    }
    results = cpu::run_kernel_on(device, op, inputs, {.gap = gap, .contract = contract});
  }

  AccessCounters total(const std::string& kernel, Access access) const {
    return device.kernel_counters().at(kernel).total(Space::Global, access);
  }
  std::uint64_t loads(const std::string& kernel) const {
    return total(kernel, Access::Load).requests;
  }
  std::uint64_t stores(const std::string& kernel) const {
    return total(kernel, Access::Store).requests;
  }

  emulation::EmulatedDevice device;
  std::vector<Tensor> results;
};

TensorSpec floats(Shape shape) { return {DType::F32, std::move(shape)}; }

/// The results do not depend on how the elements are moved: an odd gap between images leaves
/// single elements.
void expect_same_bits_with_gaps(const Op& op, const std::vector<TensorSpec>& specs,
                                const Counted& dense) {
  cpu::expect_same_bits(Counted(op, specs, 1).results, dense.results);
}

/// 3 channels, with 2 * 4 blocks of the tree each.
const Shape kImages = {2, 3, 64, 64};
constexpr std::uint64_t kImageElements = 2 * 3 * 64 * 64;
/// Requests that read or write each element once, by 16 bytes and by 4.
constexpr std::uint64_t kFours = kImageElements / 128, kOnes = kImageElements / 32;
/// Warps of the kernels below that normalise: one block of threads per channel.
constexpr std::uint64_t kImageWarps = 3 * 8;

TEST(VectorAccess, batch_normalization_reads_and_writes_fours) {
  BatchNormalization op;
  op.training_mode = true;
  const auto channels = floats({3});
  const std::vector<TensorSpec> specs = {floats(kImages), channels, channels, channels, channels};
  const Counted run(op, specs);
  EXPECT_EQ(run.loads("batch_normalization_sums"), kFours);
  EXPECT_EQ(run.stores("batch_normalization_sums"),
            kImageWarps / 8 * 2);  // two warps have four blocks
  // Each warp reads the blocks' sums once. The first thread of a channel reads the old mean.
  EXPECT_EQ(run.loads("batch_normalization_squares"), kFours + kImageWarps / 8 + 3);
  EXPECT_EQ(run.stores("batch_normalization"), kFours + 3 * 2);
  expect_same_bits_with_gaps(op, specs, run);
}

TEST(VectorAccess, gradient_of_batch_normalization_reads_and_writes_fours) {
  const BatchNormalizationGradient op;
  const auto channels = floats({3});
  const std::vector<TensorSpec> specs = {floats(kImages), floats(kImages), channels, channels,
                                         channels};
  const Counted run(op, specs);
  EXPECT_EQ(run.loads("batch_normalization_gradient_sums"), 2 * kFours + 3 * kImageWarps);
  EXPECT_EQ(run.stores("batch_normalization_gradient"), kFours + 3 * 2);
  expect_same_bits_with_gaps(op, specs, run);
}

TEST(VectorAccess, sums_of_channels_read_fours_where_rows_are_whole_in_them) {
  Reduce op(ReduceKind::Sum);
  op.keepdims = false;
  op.axes = {0, 2, 3};
  EXPECT_EQ(Counted(op, {floats(kImages)}).loads("reduce_rows"), kFours);
  // Rows of 63 * 65 elements: each is a block of the tree per 1024, whole in no four.
  const Counted odd(op, {floats({2, 3, 63, 65})});
  EXPECT_GE(odd.loads("reduce_rows"), 2 * 3 * 63 * 65 / 32);
}

TEST(VectorAccess, losses_move_fours) {
  const std::vector<TensorSpec> pair = {floats({kImageElements}), floats({kImageElements})};
  const Counted loss(BinaryCrossEntropyWithLogits{}, pair);
  EXPECT_EQ(loss.loads("binary_cross_entropy"), 2 * kFours);
  // Two elements behind the last four are moved alone: in two turns of one lane.
  const auto with_tail = floats({kImageElements + 2});
  const Counted gradient(BinaryCrossEntropyWithLogitsGradient{},
                         {with_tail, with_tail, floats(Shape{})});
  const std::string name = "binary_cross_entropy_gradient";
  EXPECT_EQ(gradient.stores(name), kFours + 2);
  EXPECT_EQ(gradient.total(name, Access::Store).useful_bytes, (kImageElements + 2) * sizeof(float));
}

TEST(VectorAccess, optimisers_move_fours) {
  const TensorSpec scalar = floats(Shape{}), step = {DType::I64, Shape{}};
  const auto parameter = floats({kImageElements + 3});
  const AdamUpdate adam;
  const Counted run(adam, {scalar, step, parameter, parameter, parameter, parameter});
  // A block of threads updates 2048 elements. Its last group has three that are moved alone.
  EXPECT_EQ(run.stores("adam_update"), 3 * (kFours + 3));
  EXPECT_EQ(run.total("adam_update", Access::Store).useful_bytes,
            3 * (kImageElements + 3) * sizeof(float));
}

TEST(VectorAccess, pooling_of_two_by_two_moves_rows_of_four) {
  MaxPool op;
  op.kernel_shape = {2, 2};
  op.strides = {2, 2};
  const Counted run(op, {floats(kImages)});
  EXPECT_EQ(run.loads("max_pool_groups"), kFours);
  EXPECT_EQ(run.stores("max_pool_groups"), kImageElements / 4 / 64);  // two outputs each
  expect_same_bits_with_gaps(op, {floats(kImages)}, run);

  MaxPoolGradient gradient;
  gradient.kernel_shape = {2, 2};
  gradient.strides = {2, 2};
  const std::vector<TensorSpec> specs = {floats(kImages), floats({2, 3, 32, 32})};
  const Counted back(gradient, specs);
  EXPECT_EQ(back.loads("max_pool_gradient_groups"), kFours + kImageElements / 4 / 64);
  EXPECT_EQ(back.stores("max_pool_gradient_groups"), kFours);
  expect_same_bits_with_gaps(gradient, specs, back);
}

TEST(VectorAccess, pooling_with_an_index_moves_a_byte_per_window_instead_of_its_elements) {
  MaxPoolWithIndex op;
  op.kernel_shape = {2, 2};
  op.strides = {2, 2};
  const Counted run(op, {floats(kImages)});
  EXPECT_EQ(run.loads("max_pool_index_groups"), kFours);
  EXPECT_EQ(run.stores("max_pool_index_groups"), 2 * kImageElements / 4 / 64);  // y and index
  expect_same_bits_with_gaps(op, {floats(kImages)}, run);

  MaxPoolIndexGradient gradient;
  gradient.kernel_shape = {2, 2};
  gradient.strides = {2, 2};
  gradient.input_shape = kImages.dims();
  const Shape pooled = {2, 3, 32, 32};
  const std::vector<TensorSpec> specs = {{DType::U8, pooled}, floats(pooled)};
  const Counted back(gradient, specs);
  EXPECT_EQ(back.loads("max_pool_index_gradient_groups"), 2 * kImageElements / 4 / 64);
  EXPECT_EQ(back.stores("max_pool_index_gradient_groups"), kFours);
  const auto loads = back.total("max_pool_index_gradient_groups", Access::Load);
  EXPECT_EQ(loads.useful_bytes, kImageElements / 4 * (sizeof(float) + 1));
  expect_same_bits_with_gaps(gradient, specs, back);

  auto summands = specs;
  summands.push_back(floats(kImages));
  const Counted sum(gradient, summands);
  EXPECT_EQ(sum.loads("max_pool_index_gradient_groups"), 2 * kImageElements / 4 / 64 + kFours);
  EXPECT_EQ(sum.stores("max_pool_index_gradient_groups"), kFours);
  expect_same_bits_with_gaps(gradient, summands, sum);
}

TEST(VectorAccess, rounding_of_images_reads_fours_of_positions_and_writes_eight_channels) {
  Conv op;
  op.kernel_shape = {3, 3};
  op.pads = {1, 1, 1, 1};
  constexpr std::uint64_t kImage = 2 * 64 * 32 * 32;
  const std::vector<TensorSpec> specs = {floats({2, 64, 32, 32}), floats({64, 64, 3, 3})};
  const Counted run(op, specs, 0, Contract::Bf16);
  const auto loads = run.total("round_images", Access::Load);
  const auto stores = run.total("round_images", Access::Store);
  EXPECT_EQ(loads.requests, kImage / 128);
  EXPECT_EQ(loads.sectors * 32, kImage * sizeof(float));
  EXPECT_EQ(stores.requests, kImage / 256);
  EXPECT_EQ(stores.sectors * 32, kImage * sizeof(BFloat16));
  cpu::expect_same_bits(Counted(op, specs, 1, Contract::Bf16).results, run.results);
}

}  // namespace
}  // namespace triptych::cuda
