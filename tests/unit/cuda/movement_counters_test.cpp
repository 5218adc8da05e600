// The counters of the GPU's data-movement kernels against closed forms.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/reshape.h"
#include "core/ops/transpose.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cuda {
namespace {

using emulation::Access;
using emulation::Space;

/// Counts of the kernel of this name in one run of the operator on zeros.
KernelCounters counters_of(const std::string& kernel, const Op& op,
                           const std::vector<TensorSpec>& specs) {
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "counted"}}});
  std::vector<Tensor> inputs;
  inputs.reserve(specs.size());
  for (const auto& spec : specs) inputs.emplace_back(spec);
  cpu::run_kernel_on(device, op, inputs, {});
  return device.kernel_counters().at(kernel);
}

/// Everything is touched once, in whole sectors.
void expect_whole_sectors(const KernelCounters& counters, std::uint64_t bytes) {
  for (const auto access : {Access::Load, Access::Store}) {
    const auto total = counters.total(Space::Global, access);
    EXPECT_EQ(total.useful_bytes, bytes);
    EXPECT_EQ(total.sectors * 32, bytes);
  }
}

constexpr std::uint64_t kElements = 3 * 64 * 96;

TEST(Transpose, touches_whole_sectors_and_no_bank_twice) {
  Transpose op;
  op.perm = {0, 2, 1};
  for (const auto dtype : {DType::U8, DType::BF16, DType::F32, DType::I64}) {
    SCOPED_TRACE(to_string(dtype));
    const auto counters = counters_of("transpose", op, {{dtype, {3, 64, 96}}});
    expect_whole_sectors(counters, kElements * dtype_size(dtype));
    for (const auto access : {Access::Load, Access::Store}) {
      const auto shared = counters.total(Space::Shared, access);
      // Elements of 8 bytes are served by half warps.
      EXPECT_EQ(shared.wavefronts, shared.requests * (dtype_size(dtype) == 8 ? 2 : 1));
    }
  }
}

TEST(StridedCopy, moves_rows_of_any_type_in_units_of_16_bytes) {
  Concat op;
  op.axis = 1;
  for (const auto dtype : {DType::U8, DType::F16, DType::F32, DType::I64}) {
    SCOPED_TRACE(to_string(dtype));
    const TensorSpec x = {dtype, {3, 64, 96}};
    const auto counters = counters_of("strided_copy", op, {x, x});
    const auto bytes = 2 * kElements * dtype_size(dtype);
    expect_whole_sectors(counters, bytes);
    EXPECT_EQ(counters.total(Space::Global, Access::Store).lanes * 16, bytes);
  }
}

TEST(StridedCopy, moves_smaller_units_where_rows_are_not_whole_in_larger_ones) {
  const auto counters = counters_of("strided_copy", Identity{}, {{DType::U8, {5, 36}}});
  EXPECT_EQ(counters.total(Space::Global, Access::Store).lanes * 4, 5U * 36);
}

TEST(GatherGradient, reads_each_gradient_once_and_stores_each_sum_once) {
  GatherGradient op;
  op.input_shape = {7, 160};
  const auto counters =
      counters_of("gather_gradient", op, {{DType::F32, {50, 160}}, {DType::I64, {50}}});
  const std::uint64_t strips = 2;  // of 128 columns
  EXPECT_EQ(counters.total(Space::Global, Access::Load).useful_bytes,
            50 * 160 * sizeof(float) + 7 * strips * 50 * sizeof(std::int64_t));
  EXPECT_EQ(counters.total(Space::Global, Access::Store).useful_bytes, 7 * 160 * sizeof(float));
}

}  // namespace
}  // namespace triptych::cuda
