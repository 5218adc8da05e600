// GPUs whose properties a program may ask for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "backends/cuda/emulation/occupancy.h"
#include "backends/cuda/program/types.h"

namespace triptych::cuda::program {

/// Published figures of a GPU, in addition to those of its multiprocessors.
struct Gpu {
  std::string_view key, name, capability;
  int multiprocessors = 0, clock_khz = 0, memory_clock_khz = 0, bus_bits = 0, l2_bytes = 0;
  std::size_t memory_bytes = 0;
};

/// The first one is the default.
std::span<const Gpu> gpus();

const emulation::Multiprocessor& multiprocessor_of(const Gpu& gpu);

cudaDeviceProp properties_of(const Gpu& gpu);

}  // namespace triptych::cuda::program
