// Counts of a device that observes its kernels: their accesses to memory by place in the source, as
// a GPU's profiler counts them. A request is one instruction of a warp of 32 lanes in lockstep: an
// access by the lanes that are active there together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace triptych {

enum class MemorySpace : std::uint8_t { Global, Shared, Constant };
enum class MemoryAccess : std::uint8_t { Load, Store, Atomic };

/// A place in a kernel's source that touches memory.
struct AccessSite {
  std::string file;
  unsigned line = 0, column = 0;
  unsigned part = 0;  ///< among several at one column
  MemorySpace space = MemorySpace::Global;
  MemoryAccess access = MemoryAccess::Load;
  auto operator<=>(const AccessSite&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct AccessCounters {
  std::uint64_t requests = 0;
  std::uint64_t lanes = 0;         ///< active, in all requests
  std::uint64_t useful_bytes = 0;  ///< that the lanes asked for
  /// Global: of those, the different ones of each request. Two lanes may ask for the same.
  std::uint64_t distinct_bytes = 0;
  std::uint64_t sectors = 0;  ///< global: distinct 32-byte sectors, of all requests
  /// Shared: passes through the 32 banks of 4 bytes. Distinct words of one bank take a pass each,
  /// atomic operations on one word, too. 8 bytes a lane are served by half warps, 16 by quarters.
  /// Constant: different addresses of each request, which the cache serves one after another.
  std::uint64_t wavefronts = 0;

  AccessCounters& operator+=(const AccessCounters& other);
};

/// A place at which a kernel's course may part, and which some lanes of a warp may therefore pass
/// without the others.
struct PassSite {
  std::string file;
  unsigned line = 0, column = 0, part = 0;
  auto operator<=>(const PassSite&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct PassCounters {
  std::uint64_t warps = 0;      ///< that passed, each as often as it did
  std::uint64_t lanes = 0;      ///< of them, that were active
  std::uint64_t divergent = 0;  ///< of the warps, with fewer lanes than they have
};

enum class OccupancyLimit : std::uint8_t { Registers, SharedMemory, Threads, Blocks };

/// How many of its warps a GPU's multiprocessor can hold at once when all run one kernel
/// (modelled): occupancy is warps / max_warps.
struct Occupancy {
  int registers = 0;  ///< per thread, by the compiler
  int blocks = 0;     ///< that fit at the same time. 0: not even one fits
  int warps = 0;      ///< of those blocks
  int max_warps = 0;
  std::vector<OccupancyLimit> limits;  ///< each of which one more block would exceed
};

struct KernelCounters {
  std::uint64_t launches = 0, blocks = 0, threads = 0;
  std::uint64_t barriers = 0;         ///< of blocks
  std::uint64_t warp_operations = 0;  ///< shuffles, votes and warp barriers, of warps
  std::uint64_t matrix_products = 0;  ///< of 16 x 8 x 16 on the tensor cores
  std::uint64_t bulk_bytes = 0;       ///< that the copy engine moved from global to shared memory
  // Sizes of the largest block that was launched.
  std::uint64_t block_threads = 0, shared_bytes = 0;
  std::map<AccessSite, AccessCounters> sites;
  /// Places of kernels that are compiled to be watched so. Others have none.
  std::map<PassSite, PassCounters> passes;
  /// By compute capability, of the launch with the fewest warps. Empty where the registers of no
  /// launch are known.
  std::map<std::string, Occupancy> occupancy;

  KernelCounters& operator+=(const KernelCounters& other);
  AccessCounters total(MemorySpace space, MemoryAccess access) const;
};

/// By kernel, as it is launched.
using KernelCounterTable = std::map<std::string, KernelCounters>;

}  // namespace triptych
