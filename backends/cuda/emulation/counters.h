// What a kernel asked of its memories, counted as a GPU's profiler counts it, by place in the
// source. A request is one instruction of one warp: the n-th time that its lanes come to a place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>

namespace triptych::cuda::emulation {

enum class Space : std::uint8_t { Global, Shared };
enum class Access : std::uint8_t { Load, Store };

/// A place in a kernel's source that touches memory.
struct Site {
  std::string file;
  unsigned line = 0, column = 0;
  Space space = Space::Global;
  Access access = Access::Load;
  auto operator<=>(const Site&) const = default;
};

struct SiteCounters {
  std::uint64_t requests = 0;
  std::uint64_t lanes = 0;         ///< active, in all requests
  std::uint64_t useful_bytes = 0;  ///< that the lanes asked for
  std::uint64_t sectors = 0;       ///< global: distinct 32-byte sectors, of all requests
  /// Shared: passes through the 32 banks of 4 bytes. Distinct words of one bank take a pass each; 8
  /// bytes a lane are served by half warps, 16 by quarters.
  std::uint64_t wavefronts = 0;

  SiteCounters& operator+=(const SiteCounters& other);
};

struct KernelCounters {
  std::uint64_t launches = 0, blocks = 0, threads = 0;
  std::uint64_t barriers = 0;         ///< of blocks
  std::uint64_t warp_operations = 0;  ///< shuffles, votes and warp barriers, of warps
  std::uint64_t matrix_products = 0;  ///< of 16 x 8 x 16 on the tensor cores
  std::uint64_t bulk_bytes = 0;       ///< that the copy engine moved from global to shared memory
  std::map<Site, SiteCounters> sites;

  KernelCounters& operator+=(const KernelCounters& other);
  SiteCounters total(Space space, Access access) const;
};

/// By kernel.
using CounterTable = std::map<std::string, KernelCounters>;

/// One request: address and bytes of each active lane.
struct Request {
  std::uint32_t mask = 0;
  std::uint32_t bytes = 0;  ///< of one lane
  std::array<std::uint64_t, 32> addresses;
};

/// Distinct 32-byte sectors that the request touches.
unsigned count_sectors(const Request& request);
/// Passes through the banks of shared memory.
unsigned count_wavefronts(const Request& request);

}  // namespace triptych::cuda::emulation
