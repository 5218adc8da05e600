// GPUs that the emulator knows by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "backends/cuda/emulation/occupancy.h"

namespace triptych::cuda::emulation {

/// Published figures of a GPU, in addition to those of its multiprocessors.
struct Gpu {
  std::string_view key, name, capability;
  int multiprocessors = 0, clock_khz = 0, memory_clock_khz = 0, bus_bits = 0;
  std::size_t l2_bytes = 0, memory_bytes = 0;

  /// The capability as a number: 90 for "9.0".
  int architecture() const;
  /// Rate of its memory, which transfers two times per clock.
  double bytes_per_second() const { return 250.0 * memory_clock_khz * bus_bits; }
};

/// The first one is the default.
std::span<const Gpu> gpus();
/// Throws InvalidArgument for a key of none of them.
const Gpu& find_gpu(std::string_view key);
const Multiprocessor& multiprocessor_of(const Gpu& gpu);

/// Share of one of so many blocks in the L1. The blocks that a multiprocessor holds share it, as
/// large as their shared memory leaves it.
std::size_t l1_bytes_of(const Gpu& gpu, const BlockDemand& block, std::uint64_t blocks);

}  // namespace triptych::cuda::emulation
