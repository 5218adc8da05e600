// Choices that a GPU leaves open and the emulation has to make: right kernels give the same bits
// for every choice.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace triptych::cuda::emulation {

/// When the products of a warpgroup read their operands from shared memory: a GPU may do so at any
/// time between the two.
enum class OperandReads : std::uint8_t {
  Latest,    ///< at the wait that covers them
  Earliest,  ///< when they are started
};

struct Schedule {
  std::uint64_t seed = 0;  ///< of the order of threads. 0: ascending
  OperandReads operands = OperandReads::Latest;
  unsigned most_blocks = 132;  ///< that run at once: multiprocessors of an H100 or H200
  /// Accesses and waits after which a thread counts as one that never ends.
  std::uint64_t most_steps = std::uint64_t{1} << 28;
  /// After so many of them a thread lets the others go on, so that the lanes of a warp stay near
  /// each other. 0: never.
  std::uint64_t turn = 0;
  /// Steps after which only its own warp continues like this: a thread that far probably does not
  /// end.
  std::uint64_t last_turn = std::uint64_t{1} << 18;
  /// Barriers of a block wait for the threads that have not ended, as GPUs do. CUDA leaves it
  /// undefined. Without this it is a fault.
  bool barriers_skip_ended = false;
  /// Stores of several threads to one place are a race even if all store the same value, and reads
  /// of shared memory that nothing wrote are faults. Without this the values decide about stores,
  /// and such reads are remarks.
  bool strict = true;
  /// Races, reads of unwritten memory and reads outside of arrays are noted, and the kernel
  /// continues. Without this the first one ends it.
  bool keeps_going = false;
  /// Subnormal numbers are kept, as CUDA does by default. Without this they are zeros, which is a
  /// rule of all contracts.
  bool keeps_subnormals = false;
};

}  // namespace triptych::cuda::emulation
