// How many blocks fit on a multiprocessor: by hand, and against NVIDIA's own header where it is.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/occupancy.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/runtime/kernel_counters.h"

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define TRIPTYCH_HAS_OCCUPANCY_HEADER
#endif

namespace triptych::cuda::emulation {
namespace {

using testing::ElementsAre;
using enum OccupancyLimit;

const Multiprocessor& multiprocessor(std::string_view capability) {
  return *std::ranges::find(multiprocessors(), capability, &Multiprocessor::capability);
}

TEST(Occupancy, whole_warps_and_quarters_limit_it) {
  const auto& hopper = multiprocessor("9.0");
  const auto full = occupancy(hopper, {1024, 32, 0});
  EXPECT_EQ(full.blocks, 2);
  EXPECT_EQ(full.warps, 64);
  EXPECT_THAT(full.limits, ElementsAre(Registers, Threads));
  // 33 registers take 40: 12 warps a quarter, 48 in all. One block has 32 of them.
  const auto half = occupancy(hopper, {1024, 33, 0});
  EXPECT_EQ(half.warps, 32);
  EXPECT_THAT(half.limits, ElementsAre(Registers));
  EXPECT_EQ(occupancy(hopper, {33, 16, 0}).warps, 64);
  EXPECT_THAT(occupancy(hopper, {32, 16, 0}).limits, ElementsAre(Blocks));
}

TEST(Occupancy, each_block_costs_a_reserved_kibibyte_of_shared_memory) {
  const auto& hopper = multiprocessor("9.0");
  EXPECT_EQ(occupancy(hopper, {128, 32, 113 * 1024}).blocks, 2);
  EXPECT_EQ(occupancy(hopper, {128, 32, 113 * 1024 + 1}).blocks, 1);
  EXPECT_THAT(occupancy(hopper, {128, 32, 113 * 1024}).limits, ElementsAre(SharedMemory));
}

TEST(Occupancy, what_does_not_fit_is_none) {
  const auto& hopper = multiprocessor("9.0");
  EXPECT_THAT(occupancy(hopper, {1024, 65, 0}).limits, ElementsAre(Registers));
  EXPECT_EQ(occupancy(hopper, {128, 32, 227 * 1024}).blocks, 1);
  EXPECT_EQ(occupancy(hopper, {128, 32, 227 * 1024 + 1}).blocks, 0);
  EXPECT_EQ(occupancy(hopper, {1025, 32, 0}).warps, 0);
}

TEST(Occupancy, of_several_launches_the_fewest_warps_are_told) {
  KernelCounters counters = {.occupancy = {{"9.0", {.warps = 48}}}};
  counters += {.occupancy = {{"9.0", {.warps = 32}}}};
  counters += {.occupancy = {{"9.0", {.warps = 64}}}};
  counters += {};
  EXPECT_EQ(counters.occupancy.at("9.0").warps, 32);
}

TEST(Occupancy, registers_are_those_of_the_instance) {
  const auto wide =
      occupancy_of("vectorised_gemm_kernel<MatMulProblem<false,false,false>>", 256, 0);
  ASSERT_TRUE(wide.contains("8.0") && wide.contains("9.0"));
  EXPECT_EQ(wide.at("9.0").blocks, 2);
  EXPECT_EQ(
      occupancy_of("hopper_gemm_kernel<HopperMatMulProblem>", 384, 196 * 1024).at("9.0").warps, 12);
  EXPECT_TRUE(occupancy_of("", 256, 0).empty());
}

TEST(Occupancy, instances_are_named_alike_by_all_compilers) {
  const std::string name = "matmul_tiled_kernel<LadderTile<true,33>,MatMulProblem<false>>";
  EXPECT_EQ(instance_name("const char* triptych::cuda::counted::described() [with auto* kKernel = "
                          "triptych::cuda::counted::{anonymous}::matmul_tiled_kernel<triptych::"
                          "cuda::counted::{anonymous}::LadderTile<true, 33>, triptych::cuda::"
                          "counted::{anonymous}::MatMulProblem<false> >]"),
            name);
  EXPECT_EQ(instance_name("const char *described() [kKernel = &triptych::cuda::counted::(anonymous "
                          "namespace)::matmul_tiled_kernel<LadderTile<true, 33>, "
                          "MatMulProblem<false>>]"),
            name);
}

#if defined(TRIPTYCH_HAS_OCCUPANCY_HEADER)

cudaOccDeviceProp properties(const Multiprocessor& of) {
  cudaOccDeviceProp result;
  result.computeMajor = of.capability[0] - '0';
  result.computeMinor = of.capability[2] - '0';
  result.maxThreadsPerBlock = 1024;
  result.maxThreadsPerMultiprocessor = of.max_warps * 32;
  result.regsPerBlock = result.regsPerMultiprocessor = 65536;
  result.warpSize = 32;
  result.sharedMemPerBlock = 48 * 1024;
  result.sharedMemPerMultiprocessor = static_cast<std::size_t>(of.shared_bytes);
  result.sharedMemPerBlockOptin = static_cast<std::size_t>(of.block_shared_bytes);
  result.reservedSharedMemPerBlock = static_cast<std::size_t>(of.reserved_bytes);
  result.numSms = 1;
  return result;
}

/// By NVIDIA's header, of a kernel that asks for its shared memory at launch.
Occupancy by_header(const Multiprocessor& of, const BlockDemand& block) {
  const auto device = properties(of);
  cudaOccFuncAttributes kernel;
  kernel.maxThreadsPerBlock = 1024;
  kernel.numRegs = block.registers;
  kernel.sharedSizeBytes = 0;
  kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  kernel.maxDynamicSharedSizeBytes = block.shared_bytes;
  kernel.numBlockBarriers = 1;
  const cudaOccDeviceState state;
  cudaOccResult result = {};
  EXPECT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state,
                                                    block.threads, block.shared_bytes),
            CUDA_OCC_SUCCESS);
  Occupancy expected = {.blocks = result.activeBlocksPerMultiprocessor};
  const std::pair<int, OccupancyLimit> bits[] = {{OCC_LIMIT_REGISTERS, Registers},
                                                 {OCC_LIMIT_SHARED_MEMORY, SharedMemory},
                                                 {OCC_LIMIT_WARPS, Threads},
                                                 {OCC_LIMIT_BLOCKS, Blocks}};
  for (const auto& [bit, limit] : bits) {
    if (result.limitingFactors & static_cast<unsigned>(bit)) expected.limits.push_back(limit);
  }
  return expected;
}

TEST(Occupancy, equals_what_nvidias_header_computes) {
  std::size_t compared = 0;
  for (const auto& on : multiprocessors()) {
    for (int registers = 1; registers <= 255; ++registers) {
      for (int threads = 1; threads <= 1024; threads += threads < 64 ? 21 : 45) {
        for (const int shared : {0, 1, 1024, 8192, 8448, 16896, 33000, 49152, 50000, 65536, 98304,
                                 101376, 101377, 115712, 166912, 196704, 232448, 232449}) {
          const BlockDemand block = {threads, registers, static_cast<std::size_t>(shared)};
          const auto ours = occupancy(on, block), theirs = by_header(on, block);
          ASSERT_EQ(ours.blocks, theirs.blocks)
              << on.capability << ": " << threads << " threads, " << registers << " registers, "
              << shared << " bytes";
          ASSERT_EQ(ours.limits, theirs.limits)
              << on.capability << ": " << threads << " threads, " << registers << " registers, "
              << shared << " bytes";
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 500000U);
}

#else

TEST(Occupancy, equals_what_nvidias_header_computes) {
  GTEST_SKIP() << "cuda_occupancy.h is not installed (it comes with the CUDA toolkit)";
}

#endif

}  // namespace
}  // namespace triptych::cuda::emulation
