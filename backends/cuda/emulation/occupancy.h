// How many blocks of a kernel fit on a multiprocessor at the same time. The limits are those of the
// CUDA C++ programming guide, "Technical specifications per compute capability", and of its
// "Multiprocessor level": registers are allocated per warp and quarter of a multiprocessor, shared
// memory per block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/kernel_counters.h"

namespace triptych::cuda::emulation {

/// A multiprocessor of one compute capability. All have 65,536 registers.
struct Multiprocessor {
  std::string_view capability;
  int max_warps = 0, max_blocks = 0;
  int shared_bytes = 0, block_shared_bytes = 0;  ///< of a block: at most, when it asks for it
  int reserved_bytes = 0;                        ///< of shared memory, by the system, in each block
  int granule_bytes = 0;                         ///< the unit of shared memory allocation
  int data_bytes = 0;                            ///< of L1 and shared memory together
  int f32_lanes = 0, f64_lanes = 0;              ///< multiply-adds per clock
};

/// 7.5, 8.0, 8.6, 8.9, 9.0.
const std::vector<Multiprocessor>& multiprocessors();

/// Demands of one block, with `registers` per thread.
struct BlockDemand {
  int threads = 0, registers = 0;
  std::size_t shared_bytes = 0;
};

Occupancy occupancy(const Multiprocessor& multiprocessor, const BlockDemand& block);

/// By compute capability, for each that registers.csv has this instance of a kernel for.
std::map<std::string, Occupancy> occupancy_of(const std::string& instance, int threads,
                                              std::size_t shared_bytes);

/// registers.csv, as it was when the program was built.
std::string_view registers_table();

/// The name that registers.csv has for a kernel's instance, without namespaces and spaces, from
/// __PRETTY_FUNCTION__ of a function with the kernel as template parameter kKernel.
std::string instance_name(std::string_view pretty_function);

}  // namespace triptych::cuda::emulation
