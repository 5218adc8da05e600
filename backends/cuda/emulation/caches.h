// A model of a GPU's caches that counts the sectors of global memory behind them. A block has its
// share of an L1, which is empty when the block begins. The L2 is empty when a launch begins. Both
// hold sectors of 32 bytes and replace the least recently used one. Loads fill the L1. Stores and
// atomic operations go to the L2, which writes each changed sector to memory once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "backends/cuda/emulation/counters.h"
#include "backends/cuda/emulation/kernel_costs.h"

namespace triptych::cuda::emulation {

/// The most recently used sectors.
class SectorCache {
 public:
  SectorCache();
  void clear();
  /// With more sectors than that it starts again without any.
  void limit(std::size_t bytes);
  /// Makes it the most recently used one. False: it was not there.
  bool use(std::uint64_t sector);
  /// Marks one that was used before as changed. False: it was marked already.
  bool change(std::uint64_t sector);

 private:
  struct Entry {
    std::uint64_t sector = 0;
    std::uint32_t older = 0, newer = 0;
    std::uint32_t next = 0;  ///< of its chain. 0: none
    bool is_changed = false;
  };
  std::uint32_t& chain_of(std::uint64_t sector);
  std::uint32_t find(std::uint64_t sector);
  void put_into_chain(std::uint32_t at);
  void take_from_chain(std::uint32_t at);
  std::uint32_t add();
  void take_out(std::uint32_t at);
  void link(std::uint32_t at);

  std::size_t capacity_ = 1;
  std::vector<Entry> entries_;         ///< the first one joins the ends of the list
  std::vector<std::uint32_t> chains_;  ///< by hash: the first entry. Their number is a power of two
};

/// The part that all blocks of a launch share.
class SharedCache {
 public:
  explicit SharedCache(std::size_t bytes) { l2_.limit(bytes); }
  /// Adds what a request of a block with this L1 moves.
  void count(const Request& request, Access access, SectorCache& l1, SiteCosts& costs);

 private:
  std::mutex mutex_;
  SectorCache l2_;
};

}  // namespace triptych::cuda::emulation
