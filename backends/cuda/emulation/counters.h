// How one request of a warp is counted. The sums are core/runtime/kernel_counters.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "core/runtime/kernel_counters.h"

namespace triptych::cuda::emulation {

using Space = MemorySpace;
using Access = MemoryAccess;

/// Atomic and volatile accesses are relaxed. Volatile ones of two lanes of a warp are a race, too:
/// sums of a warp that count on lanes in lockstep are wrong since Volta.
enum class Strength : std::uint8_t { Atomic, Volatile, Plain };

/// How a thread accesses memory. An atomic operation that fails writes nothing.
struct Manner {
  Access access = Access::Load;
  Strength strength = Strength::Plain;
  bool writes = false;
};

/// One request: address and bytes of each active lane.
struct Request {
  std::uint32_t mask = 0;
  std::uint32_t bytes = 0;  ///< of one lane
  std::array<std::uint64_t, 32> addresses;
};

/// Bytes that the lanes ask for, each counted once.
unsigned count_distinct_bytes(const Request& request);
/// Distinct 32-byte sectors that the request touches.
unsigned count_sectors(const Request& request);
/// Passes through the banks of shared memory.
unsigned count_wavefronts(const Request& request, Access access);
/// Different addresses of the lanes: passes through the cache of constant memory.
unsigned count_addresses(const Request& request);
/// The most lanes with one address.
unsigned count_contention(const Request& request);
/// The sectors of count_sectors(), each once, and their number. They are numbers of 32 bytes.
unsigned list_sectors(const Request& request, std::array<std::uint64_t, 64>& sectors);

}  // namespace triptych::cuda::emulation
