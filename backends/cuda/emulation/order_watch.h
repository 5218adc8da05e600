// Which copies and products of a Hopper block are ordered, by clocks of events (vector clocks):
// threads that have waited for a phase know the earlier actions of the threads that arrived at it,
// in any order of execution. A tile is watched by its atoms of 1024 bytes, the unit of the swizzle:
// products may read only data that a copy has written and that their thread knows of, and a copy
// may overwrite only data that it knows to have been read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cuda/emulation/language.h"

namespace triptych::cuda::emulation {

class Block;

/// Bytes of shared memory, from its start.
struct SharedRange {
  std::size_t begin = 0, bytes = 0;
};

class OrderWatch {
 public:
  static constexpr std::size_t kMostBarriers = 64;

  void begin_block(unsigned threads);

  void block_met();
  void warp_met(unsigned warp, std::uint32_t mask);
  /// The thread arrives at the barrier. It has waited for it. Its phase is over.
  void arrived(unsigned thread, std::size_t barrier);
  void waited(unsigned thread, std::size_t barrier);
  void phase_over(std::size_t barrier);

  /// Accesses that the running thread begins and waits for. They fail it with Race or
  /// Uninitialised.
  void copy_started(Block& block, SharedRange to, std::size_t barrier, const Location& where);
  void product_started(Block& block, SharedRange operand, const Location& where);
  void product_ended(unsigned thread, SharedRange operand);
  /// It also read the operands of a product that has ended.
  void product_goes_on(unsigned thread, SharedRange operand);

 private:
  using Clock = std::vector<std::uint32_t>;  ///< by thread, then by barrier: phases that were over
  struct BarrierClocks {
    Clock gathering, over;
    std::uint32_t phases = 0;  ///< that were over
  };
  struct Atom {
    bool copied = false;
    std::size_t barrier = 0;
    std::uint32_t phase = 0;  ///< that is over when the copy has landed
    Location where;
    std::vector<std::uint32_t> reads;  ///< by thread: its clock at the end of its last product
  };
  static constexpr std::uint32_t kReading = ~0U;

  void check_copy(Block& block, const Atom& atom, std::size_t barrier, bool whole,
                  const Location& where) const;
  std::uint32_t phases_known(const Clock& clock, std::size_t barrier) const {
    return clock[threads_ + barrier];
  }

  unsigned threads_ = 0;
  std::vector<Clock> clocks_;
  std::vector<BarrierClocks> barriers_;
  std::vector<Atom> atoms_;
};

}  // namespace triptych::cuda::emulation
