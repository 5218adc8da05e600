// A model of a GPU's caches that counts the sectors of global memory behind them. A block has its
// share of an L1, which is empty when the block begins. The L2 is empty when a launch begins. Both
// hold sectors of 32 bytes and replace the least recently used one. Loads fill the L1. Stores and
// atomic operations go to the L2, which writes each changed sector to memory once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "backends/cuda/emulation/counters.h"
#include "backends/cuda/emulation/kernel_costs.h"

namespace triptych::cuda::emulation {

/// The most recently used sectors.
class SectorCache {
 public:
  void clear();
  /// With more sectors than that it starts again without any.
  void limit(std::size_t bytes);
  bool contains(std::uint64_t sector) const { return places_.contains(sector); }
  /// Makes it the most recently used one. False: it was not there.
  bool use(std::uint64_t sector);
  /// Marks one that was used before as changed. False: it was marked already.
  bool change(std::uint64_t sector);

 private:
  struct Entry {
    std::uint64_t sector = 0;
    std::uint32_t older = 0, newer = 0;
    bool is_changed = false;
  };
  void take_out(std::uint32_t at);
  void link(std::uint32_t at);

  std::size_t capacity_ = 1;
  std::vector<Entry> entries_{1};  ///< the first one joins the ends of the list
  std::unordered_map<std::uint64_t, std::uint32_t> places_;
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
