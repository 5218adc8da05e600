// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/gpu.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/base/error.h"

namespace triptych::cuda::emulation {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20, kGiB = std::size_t{1} << 30;

// NVIDIA's data sheets and the tables of its architecture white papers.
constexpr Gpu kGpus[] = {
    {"h100", "NVIDIA H100 80GB HBM3", "9.0", 132, 1980000, 2619000, 5120, 50 * kMiB, 80 * kGiB},
    {"a100", "NVIDIA A100-SXM4-40GB", "8.0", 108, 1410000, 1215000, 5120, 40 * kMiB, 40 * kGiB},
    {"rtx-3090", "NVIDIA GeForce RTX 3090", "8.6", 82, 1695000, 9751000, 384, 6 * kMiB, 24 * kGiB},
    {"rtx-4090", "NVIDIA GeForce RTX 4090", "8.9", 128, 2520000, 10501000, 384, 72 * kMiB,
     24 * kGiB},
    {"t4", "Tesla T4", "7.5", 40, 1590000, 5001000, 256, 4 * kMiB, 16 * kGiB}};

}  // namespace

std::span<const Gpu> gpus() { return kGpus; }

const Gpu& find_gpu(std::string_view key) {
  const auto* found = std::ranges::find(kGpus, key, &Gpu::key);
  if (found == std::end(kGpus)) {
    std::vector<std::string_view> keys;
    for (const auto& gpu : kGpus) keys.push_back(gpu.key);
    throw InvalidArgument(
        fmt::format("there is no GPU \"{}\"; there is {}", key, fmt::join(keys, ", ")));
  }
  return *found;
}

int Gpu::architecture() const {
  int number = 0;
  for (const char each : capability)
    if (each != '.') number = 10 * number + (each - '0');
  return number;
}

const Multiprocessor& multiprocessor_of(const Gpu& gpu) {
  return *std::ranges::find(multiprocessors(), gpu.capability, &Multiprocessor::capability);
}

std::size_t l1_bytes_of(const Gpu& gpu, const BlockDemand& block, std::uint64_t blocks) {
  const auto& on = multiprocessor_of(gpu);
  const auto multiprocessors = static_cast<std::uint64_t>(gpu.multiprocessors);
  const auto waiting = (blocks + multiprocessors - 1) / multiprocessors;
  const auto most = static_cast<std::uint64_t>(std::max(1, occupancy(on, block).blocks));
  const auto resident = static_cast<std::size_t>(std::clamp<std::uint64_t>(waiting, 1, most));
  const auto all = static_cast<std::size_t>(on.data_bytes);
  const auto shared =
      block.shared_bytes == 0
          ? 0
          : resident * (block.shared_bytes + static_cast<std::size_t>(on.reserved_bytes));
  return (all - std::min(all, shared)) / resident;
}

}  // namespace triptych::cuda::emulation
