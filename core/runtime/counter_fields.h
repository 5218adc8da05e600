// How reports name the counts of a kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "core/runtime/kernel_counters.h"

namespace triptych {

constexpr std::string_view to_string(MemorySpace space) {
  if (space == MemorySpace::Constant) return "constant";
  return space == MemorySpace::Global ? "global" : "shared";
}
constexpr std::string_view to_string(MemoryAccess access) {
  if (access == MemoryAccess::Atomic) return "atomic";
  return access == MemoryAccess::Load ? "load" : "store";
}

/// Calls visit(name, count) for the counts of one memory, or of both where no `space` is given.
template <class Visit>
void visit_accesses(const AccessCounters& at, std::optional<MemorySpace> space,
                    const Visit& visit) {
  visit("requests", at.requests);
  visit("lanes", at.lanes);
  visit("useful_bytes", at.useful_bytes);
  if (!space || space == MemorySpace::Global) {
    visit("distinct_bytes", at.distinct_bytes);
    visit("sectors", at.sectors);
  }
  if (space != MemorySpace::Global) visit("wavefronts", at.wavefronts);
}

/// The same for the launches of a kernel.
template <class Visit>
void visit_launches(const KernelCounters& counters, const Visit& visit) {
  visit("launches", counters.launches);
  visit("blocks", counters.blocks);
  visit("threads", counters.threads);
  visit("block_threads", counters.block_threads);
  visit("shared_bytes", counters.shared_bytes);
  visit("barriers", counters.barriers);
  visit("warp_operations", counters.warp_operations);
  visit("matrix_products", counters.matrix_products);
}

}  // namespace triptych
