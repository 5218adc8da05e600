// All-reduces on arrays that share one memory, by the vector unit and the schedules of parallel/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/measure/all_reduce_bench.h"
#include "parallel/collectives/algorithms.h"
#include "systolic/isa/machine.h"

namespace triptych::measure {

struct ArrayAllReduce {
  std::vector<std::vector<float>> sums;  ///< the buffer of each rank afterwards
  std::uint64_t rounds = 0;              ///< runs that start together
  std::uint64_t cycles = 0;              ///< of the slowest array in each round
  std::uint64_t waits = 0;               ///< arbiter_wait_cycles of all arrays
};

/// Sums one buffer for each rank, all of one length, on as many arrays of the machine. A message
/// stays at its place in the shared DRAM: the receiver's vector unit loads it from there. Arrays
/// meet after every step that moves data. Throws InvalidArgument for a machine without a vector
/// unit, with fewer arrays than ranks, or with too little DRAM.
ArrayAllReduce all_reduce_on_arrays(const mmu::MachineConfig& machine,
                                    parallel::Algorithm algorithm,
                                    const std::vector<std::vector<float>>& buffers);

/// Throws InvalidArgument for a machine without a vector unit, or with fewer arrays than ranks.
void check_arrays(const mmu::MachineConfig& machine, std::size_t ranks);

/// Cycles of a sum of f32 as a row of `bench all-reduce`, with the clock of the machine.
AllReduceRow simulate_all_reduce(const mmu::MachineConfig& machine, parallel::Algorithm algorithm,
                                 int ranks, std::int64_t bytes);

}  // namespace triptych::measure
