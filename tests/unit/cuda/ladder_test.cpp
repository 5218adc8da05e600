// The counters of the matmul ladder against closed forms.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tuple>

#include "tests/unit/cuda/matmul_counters.h"

namespace triptych::cuda {
namespace {

using emulation::Access;
using emulation::Space;

constexpr std::int64_t kSize = 64;

/// Counters of the product of two matrices of 64 x 64.
KernelCounters counters_of(const std::string& kernel) {
  return matmul_counters(kernel, {}, {kSize, kSize}, {kSize, kSize});
}

/// The sites of the loop over k, which every thread passes kSize times: those of the most requests.
double per_request(const KernelCounters& counters, Space space, Access access,
                   std::uint64_t AccessCounters::*counter) {
  double sum = 0, requests = 0;
  for (const auto& [site, at] : counters.sites) {
    if (site.space != space || site.access != access || at.lanes < kSize * kSize * kSize) continue;
    sum += static_cast<double>(at.*counter);
    requests += static_cast<double>(at.requests);
  }
  return sum / requests;
}

double sectors(const std::string& kernel) {
  return per_request(counters_of(kernel), Space::Global, Access::Load, &AccessCounters::sectors);
}

double wavefronts(const std::string& kernel) {
  return per_request(counters_of(kernel), Space::Shared, Access::Load, &AccessCounters::wavefronts);
}

TEST(Ladder, naive_reads_a_sector_for_each_lane_and_one_for_all) {
  EXPECT_EQ(sectors("naive"), (32 + 1) / 2.0);
}

TEST(Ladder, coalesced_reads_whole_sectors) { EXPECT_EQ(sectors("coalesced"), (1 + 4) / 2.0); }

TEST(Ladder, tiles_are_read_without_bank_conflicts_unless_transposed_and_unpadded) {
  EXPECT_EQ(wavefronts("tiled"), 1);
  EXPECT_EQ(wavefronts("tiled-transposed"), (1 + 32) / 2.0);
  EXPECT_EQ(wavefronts("tiled-padded"), 1);
}

TEST(Ladder, tiles_are_read_once_per_block_from_global_memory) {
  // Each of the two matrices by two blocks along the other's side.
  const auto loads = counters_of("tiled").total(Space::Global, Access::Load);
  const std::uint64_t elements = 2 * 2 * kSize * kSize;
  const std::uint64_t offsets =
      4 * 1024 * 2 * sizeof(std::int64_t);  // of the batch, by each thread
  EXPECT_EQ(loads.useful_bytes, elements * sizeof(float) + offsets);
  EXPECT_EQ(counters_of("tiled").barriers, 4U * 2 * 2);
}

TEST(Ladder, each_element_is_stored_once_in_whole_sectors) {
  for (const char* kernel : {"coalesced", "tiled", "tiled-padded"}) {
    const auto stores = counters_of(kernel).total(Space::Global, Access::Store);
    EXPECT_EQ(stores.useful_bytes, kSize * kSize * sizeof(float)) << kernel;
    EXPECT_EQ(stores.sectors * 32, stores.useful_bytes) << kernel;
  }
}

constexpr std::int64_t kRows = 256, kColumns = 128, kDepth = 48;  // two tiles of y, six of k
constexpr std::uint64_t kBlocks = 2, kWarps = kBlocks * 8;

class Vectorised : public testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  static KernelCounters counters() {
    MatMul op;
    std::tie(op.transpose_a, op.transpose_b) = GetParam();
    return matmul_counters("vectorised", op,
                           op.transpose_a ? Shape{kDepth, kRows} : Shape{kRows, kDepth},
                           op.transpose_b ? Shape{kColumns, kDepth} : Shape{kDepth, kColumns});
  }
};
INSTANTIATE_TEST_SUITE_P(Transposes, Vectorised,
                         testing::Values(std::pair(false, false), std::pair(false, true),
                                         std::pair(true, false), std::pair(true, true)));

TEST_P(Vectorised, reads_each_tile_once_in_whole_sectors_of_16_bytes_a_lane) {
  const auto loads = counters().total(Space::Global, Access::Load);
  // a by one column of blocks, b by two rows of them, and two offsets of the batch by each thread.
  const std::uint64_t bytes = (kRows * kDepth + kBlocks * kDepth * kColumns) * sizeof(float);
  const std::uint64_t offsets = kWarps * 2;
  EXPECT_EQ(loads.useful_bytes, bytes + offsets * 32 * sizeof(std::int64_t));
  EXPECT_EQ(loads.requests, bytes / (32 * 16) + offsets);
  EXPECT_EQ(loads.sectors, bytes / 32 + offsets);
}

TEST_P(Vectorised, has_no_bank_conflict) {
  const auto total = counters();
  const auto loads = total.total(Space::Shared, Access::Load);
  // For each k, 8 rows and 8 columns in 16-byte pieces, each served by quarter warps.
  EXPECT_EQ(loads.requests, kWarps * kDepth * 4);
  EXPECT_EQ(loads.wavefronts, loads.requests * 4);
  const auto stores = total.total(Space::Shared, Access::Store);
  EXPECT_EQ(stores.useful_bytes, kBlocks * kDepth * (128 + 128) * sizeof(float));
  EXPECT_EQ(stores.wavefronts, stores.useful_bytes / (32 * sizeof(float)));
}

TEST_P(Vectorised, waits_once_per_tile_and_stores_in_whole_sectors) {
  const auto total = counters();
  EXPECT_EQ(total.barriers, kBlocks * kDepth / 8);
  const auto stores = total.total(Space::Global, Access::Store);
  EXPECT_EQ(stores.useful_bytes, kRows * kColumns * sizeof(float));
  EXPECT_EQ(stores.requests, stores.useful_bytes / (32 * 16));
  EXPECT_EQ(stores.sectors * 32, stores.useful_bytes);
}

/// Two by three tiles of y, four of k.
KernelCounters tensor_core_counters() {
  return matmul_counters("tensor-core", {}, {256, 256}, {256, 384}, Contract::Bf16);
}

TEST(TensorCore, multiplies_each_tile_once) {
  const auto counters = tensor_core_counters();
  EXPECT_EQ(counters.blocks, 6U);
  EXPECT_EQ(counters.matrix_products, 256U * 384 * 256 / (16 * 8 * 16));
  EXPECT_EQ(counters.barriers, counters.blocks * 256 / 64);
}

TEST(TensorCore, reads_each_tile_once_in_whole_sectors) {
  const auto counters = tensor_core_counters();
  const auto loads = counters.total(Space::Global, Access::Load);
  const std::uint64_t bytes = (3 * 256 * 256 + 2 * 256 * 384) * sizeof(std::uint16_t);
  const std::uint64_t offsets = counters.blocks * 4 * 2;  // of the batch, by each warp
  EXPECT_EQ(loads.useful_bytes, bytes + offsets * 32 * sizeof(std::int64_t));
  EXPECT_EQ(loads.sectors, bytes / 32 + offsets);
  const auto stores = counters.total(Space::Global, Access::Store);
  EXPECT_EQ(stores.useful_bytes, 256U * 384 * sizeof(float));
  EXPECT_EQ(stores.sectors * 32, stores.useful_bytes);
}

TEST(TensorCore, has_no_bank_conflict) {
  const auto counters = tensor_core_counters();
  const auto stores = counters.total(Space::Shared, Access::Store);
  EXPECT_EQ(stores.useful_bytes, counters.blocks * 256 * (128 + 128) * sizeof(std::uint16_t));
  EXPECT_EQ(stores.wavefronts, stores.requests * 4);
  // A warp loads 64 x 16 of a and 16 x 64 of b for 32 products, 512 bytes at a time.
  const auto loads = counters.total(Space::Shared, Access::Load);
  EXPECT_EQ(loads.requests, counters.matrix_products / 32 * 8);
  EXPECT_EQ(loads.wavefronts, loads.requests * 4);
}

TEST(Hopper, brings_each_tile_once_by_the_copy_engine_and_multiplies_it_once) {
  // Two by two tiles of 128 x 256, two of k. Each block waits once at the start.
  const auto counters = matmul_counters("hopper", {}, {256, 128}, {128, 512}, Contract::Bf16);
  EXPECT_EQ(counters.blocks, 4U);
  EXPECT_EQ(counters.barriers, 4U);
  EXPECT_EQ(counters.bulk_bytes, 4U * (128 + 256) * 128 * sizeof(std::uint16_t));
  EXPECT_EQ(counters.matrix_products, 256U * 512 * 128 / (16 * 8 * 16));
  const auto stores = counters.total(Space::Global, Access::Store);
  EXPECT_EQ(stores.useful_bytes, 256U * 512 * sizeof(float));
  EXPECT_EQ(stores.sectors * 32, stores.useful_bytes);
}

}  // namespace
}  // namespace triptych::cuda
