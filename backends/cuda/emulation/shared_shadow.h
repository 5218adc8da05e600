// History of every byte of a block's shared memory: who wrote and who read it since when.
// Two accesses of different threads, one of them a write, need a barrier of the block between them,
// or, within a warp, an operation in which all its lanes meet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cuda/emulation/block.h"
#include "backends/cuda/emulation/counters.h"

namespace triptych::cuda::emulation {

class SharedShadow {
 public:
  SharedShadow() : bytes_(kMaxSharedBytes) {}

  void begin_block(unsigned threads);
  void barrier_passed() { ++epoch_; }
  void warp_met(unsigned warp) { ++warp_epochs_[warp]; }
  /// Fails the running thread with OutOfBounds or Race, or suspects it of Uninitialised.
  void access(Access access, std::size_t offset, unsigned bytes, const Location& where);

 private:
  /// The last access of a kind: when, and by which thread, or by several.
  struct Stamp {
    std::uint64_t epoch = 0;  ///< 0: never
    std::uint32_t warp_epoch = 0;
    std::uint16_t warp = 0, thread = 0;
    unsigned line = 0;
  };
  struct Byte {
    std::uint64_t written_in = 0;  ///< number of the block
    Stamp write, read;
  };
  bool conflicts(const Stamp& earlier, unsigned thread) const;

  std::vector<Byte> bytes_;
  std::vector<std::uint32_t> warp_epochs_;
  std::uint64_t epoch_ = 0;  ///< counts barriers and blocks
  std::uint64_t block_ = 0;
};

}  // namespace triptych::cuda::emulation
