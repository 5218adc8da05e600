// A data-parallel training step whose ranks have an array of one memory each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/runtime/executor.h"
#include "experiments/training/device_set.h"

namespace triptych::measure {

/// Simulated cycles of rank 0. All ranks run the same programs, from the same cycle on.
struct ArrayRanks {
  int ranks = 1;
  std::uint64_t compute_cycles = 0;     ///< of the nodes
  std::uint64_t wait_cycles = 0;        ///< of them, in which another array has the DRAM's ports
  std::uint64_t all_reduce_cycles = 0;  ///< a ring over the gradients, on the vector units
  std::int64_t all_reduce_bytes = 0;
  double clock_mhz = 0;

  std::uint64_t cycles() const { return compute_cycles + all_reduce_cycles; }
  double seconds() const { return static_cast<double>(cycles()) / (clock_mhz * 1e6); }
};

/// The images of each of the `config.parallel.ranks` ranks. Throws InvalidArgument unless the
/// machine has an array for each and a vector unit, and the ranks divide the batch.
std::int64_t batch_of_a_rank(const training::ExecutionConfig& config, std::int64_t batch);

/// Runs the step of one rank, which batch_of_a_rank has accepted, once.
ArrayRanks time_array_ranks(Executor& executor, const training::DeviceSet& machine);

}  // namespace triptych::measure
