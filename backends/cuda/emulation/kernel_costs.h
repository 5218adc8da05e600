// Costs of a plain kernel beyond its accesses: contention, branches, instructions, and the sectors
// behind a GPU's caches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "core/runtime/kernel_counters.h"

namespace triptych::cuda::emulation {

/// Costs of the requests at a place of the source.
struct SiteCosts {
  /// Atomic: the most lanes on one address, of all requests. 1 per request without contention.
  std::uint64_t contention = 0;
  // Global, modelled: sectors that the L1 passes on to the L2, and the L2 to memory.
  std::uint64_t l2_sectors = 0, memory_sectors = 0;

  SiteCosts& operator+=(const SiteCosts& other);
};

/// A conditional jump of a kernel's code.
struct BranchCounters {
  std::uint64_t warps = 0;      ///< that came to it, each as often as it did
  std::uint64_t divergent = 0;  ///< of them, whose lanes left it on more than one path
};

/// Arithmetic instructions of a kernel, by what they compute.
enum class Arithmetic : std::uint8_t {
  Add32,  ///< and differences, minima, maxima
  Multiply32,
  MultiplyAdd32,
  Divide32,  ///< and square roots
  Add64,
  Multiply64,
  MultiplyAdd64,
  Divide64,
  Function,  ///< calls of functions of <cmath>
};
std::string_view to_string(Arithmetic kind);

struct IssueCounters {
  std::uint64_t warps = 0;  ///< instructions that warps issued
  std::uint64_t lanes = 0;  ///< active, in all of them
};

struct KernelCosts {
  std::map<AccessSite, SiteCosts> sites;
  std::map<PassSite, BranchCounters> branches;
  /// Empty where the kernel's instructions are not known.
  std::map<Arithmetic, IssueCounters> arithmetic;

  KernelCosts& operator+=(const KernelCosts& other);
  SiteCosts total() const;
  /// Floating-point operations of the lanes. A multiply-add is two.
  double operations() const;
};

}  // namespace triptych::cuda::emulation
