// The order of accesses of a block's threads: barriers of the block make it and, within a warp,
// operations in which all its lanes meet. Two accesses of different threads to one place with
// neither between are a race when one of them writes, unless both are relaxed: atomic operations
// and volatile accesses may meet each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cuda/emulation/counters.h"

namespace triptych::cuda::emulation {

class AccessOrder {
 public:
  /// An access: when, and by whom.
  struct Stamp {
    std::uint64_t epoch : 44 = 0;  ///< 0: there was none
    std::uint64_t line : 20 = 0;
    std::uint32_t warp_epoch = 0;
    std::uint16_t who = 0;  ///< a thread, several lanes of a warp, or several warps
    bool relaxed = false;
  };
  /// The last accesses of one place.
  struct Cell {
    Stamp write, read;
  };

  void begin_block(unsigned threads);
  void barrier_passed() { ++epoch_; }
  void warp_met(unsigned warp) { ++warp_epochs_[warp]; }

  Stamp now(unsigned thread, unsigned line, bool relaxed) const;
  /// The access of the cell that this one, which is now, races with; nullptr: none.
  const Stamp* raced(const Cell& cell, Access access, const Stamp& now) const;
  void note(Cell& cell, Access access, const Stamp& now) const;

 private:
  bool unordered(const Stamp& earlier, const Stamp& now) const;

  std::vector<std::uint32_t> warp_epochs_;
  std::uint64_t epoch_ = 0;  ///< counts barriers and blocks
};

}  // namespace triptych::cuda::emulation
