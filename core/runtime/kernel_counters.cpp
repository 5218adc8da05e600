// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel_counters.h"

#include <algorithm>

namespace triptych {

AccessCounters& AccessCounters::operator+=(const AccessCounters& other) {
  requests += other.requests;
  lanes += other.lanes;
  useful_bytes += other.useful_bytes;
  distinct_bytes += other.distinct_bytes;
  sectors += other.sectors;
  wavefronts += other.wavefronts;
  return *this;
}

KernelCounters& KernelCounters::operator+=(const KernelCounters& other) {
  launches += other.launches;
  blocks += other.blocks;
  threads += other.threads;
  barriers += other.barriers;
  warp_operations += other.warp_operations;
  matrix_products += other.matrix_products;
  bulk_bytes += other.bulk_bytes;
  block_threads = std::max(block_threads, other.block_threads);
  shared_bytes = std::max(shared_bytes, other.shared_bytes);
  for (const auto& [site, counters] : other.sites) sites[site] += counters;
  for (const auto& [site, counters] : other.passes) {
    auto& sum = passes[site];
    sum.warps += counters.warps;
    sum.lanes += counters.lanes;
    sum.divergent += counters.divergent;
  }
  for (const auto& [capability, at] : other.occupancy) {
    auto& fewest = occupancy.try_emplace(capability, at).first->second;
    if (at.warps < fewest.warps) fewest = at;
  }
  return *this;
}

AccessCounters KernelCounters::total(MemorySpace space, MemoryAccess access) const {
  AccessCounters sum;
  for (const auto& [site, counters] : sites) {
    if (site.space == space && site.access == access) sum += counters;
  }
  return sum;
}

}  // namespace triptych
