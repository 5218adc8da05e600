// The counters of the matmul ladder against closed forms.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/ops/matmul.h"

namespace triptych::cuda {
namespace {

using emulation::Access;
using emulation::EmulatedDevice;
using emulation::KernelCounters;
using emulation::Space;

constexpr std::int64_t kSize = 64;

/// What one step of the ladder counts for a product of 64 x 64 matrices.
KernelCounters counters_of(const std::string& kernel) {
  EmulatedDevice device({.threads = 2, .extra = {{"emulation", "counted"}}});
  const MatMul op;
  const auto matrix = Operand::dense({DType::F32, {kSize, kSize}});
  const std::vector<Operand> inputs = {matrix, matrix}, outputs = {matrix};
  const std::vector<const Tensor*> constants(2);
  const KernelQuery query = {op, inputs, outputs, Contract::F32, constants};
  const auto table = device.kernels();
  const auto entry = std::ranges::find_if(
      table, [&](const KernelEntry& e) { return e.op == MatMul::kName && e.name == kernel; });
  if (entry == table.end()) throw InvalidArgument("no kernel " + kernel);
  const auto prepared = entry->prepare(query, device);
  const auto a = device.allocate(matrix.spec.bytes()), b = device.allocate(matrix.spec.bytes());
  const auto y = device.allocate(matrix.spec.bytes());
  const std::byte* in[] = {a->data(), b->data()};
  std::byte* out[] = {y->data()};
  device.submit(0, [&](Stream* stream) { prepared->run({in, out, nullptr, stream}); });
  return device.kernel_counters().at(kernel);
}

/// The sites of the loop over k, which every thread passes kSize times: those of the most requests.
double per_request(const KernelCounters& counters, Space space, Access access,
                   std::uint64_t emulation::SiteCounters::*counter) {
  double sum = 0, requests = 0;
  for (const auto& [site, at] : counters.sites) {
    if (site.space != space || site.access != access || at.lanes < kSize * kSize * kSize) continue;
    sum += static_cast<double>(at.*counter);
    requests += static_cast<double>(at.requests);
  }
  return sum / requests;
}

double sectors(const std::string& kernel) {
  return per_request(counters_of(kernel), Space::Global, Access::Load,
                     &emulation::SiteCounters::sectors);
}

double wavefronts(const std::string& kernel) {
  return per_request(counters_of(kernel), Space::Shared, Access::Load,
                     &emulation::SiteCounters::wavefronts);
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

}  // namespace
}  // namespace triptych::cuda
