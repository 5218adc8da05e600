// The order of accesses of a block's threads, as CUDA's memory model has it. Barriers of the block
// order all threads, __syncwarp the lanes of its mask. A fence, a relaxed write, a relaxed read of
// it and a fence order two threads, which makes locks. Shuffles and votes order nothing. Two
// accesses of different threads to one place that nothing orders are a race when one of them
// writes, unless both are relaxed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/emulation/counters.h"

namespace triptych::cuda::emulation {

class AccessOrder {
 public:
  /// Accesses of one kind by lanes of one warp. In each cell the last ones count.
  struct Entry {
    std::uint32_t lanes = 0;  ///< 0: none
    std::uint32_t time = 0;   ///< of each of the lanes
    std::uint32_t line : 24 = 0;
    std::uint32_t warp : 5 = 0;
    std::uint32_t strength : 2 = 0;
    std::uint32_t writes : 1 = 0;
  };
  /// The accesses of one place that later ones may race with.
  struct Cell {
    std::uint64_t epoch : 35 = 0;
    std::uint64_t written : 1 = 0;  ///< by any entry
    std::uint64_t more : 28 = 0;    ///< number of further entries, plus 1
    std::array<Entry, 2> entries;
  };

  static bool same_kind(const Entry& a, const Entry& b) {
    return a.warp == b.warp && a.time == b.time && a.strength == b.strength && a.writes == b.writes;
  }

  void begin_block(unsigned threads);
  void barrier_passed();
  void warp_synchronised(unsigned warp, std::uint32_t mask);
  void fence(unsigned thread);
  /// A relaxed access: with fences around it, others learn about the thread's earlier actions.
  void relaxed_access(unsigned thread, std::uintptr_t address, bool reads, bool writes);

  Entry now(unsigned thread, unsigned line, const Manner& manner) const {
    return {.lanes = 1U << thread % 32,
            .time = times_.data()[thread],
            .line = line & 0xFFFFFFU,
            .warp = thread / 32 & 31U,
            .strength = static_cast<std::uint32_t>(manner.strength) & 3U,
            .writes = manner.writes ? 1U : 0U};
  }
  /// Notes an access where it is clear without a comparison that it races with none: the first one
  /// since a barrier, or a read of data that one warp after the other only reads.
  bool note_at_once(Cell& cell, const Entry& now) const {
    if (cell.epoch != epoch_) {
      cell.epoch = epoch_ & kMostEpoch;
      cell.more = 0;
      cell.written = now.writes;
      cell.entries = {now, Entry{}};
      return true;
    }
    if (cell.written != 0 || now.writes != 0 || !same_kind(cell.entries[0], now)) return false;
    cell.entries[0].lanes |= now.lanes;
    cell.entries[0].line = now.line;
    return true;
  }
  /// Notes an access. Returns an earlier one that it races with, or nullptr. If there are several,
  /// the result is one that is no plain store, where possible.
  const Entry* access(Cell& cell, unsigned thread, const Entry& now) {
    return note_at_once(cell, now) ? nullptr : compare(cell, thread, now);
  }
  /// True for stores that are neither volatile nor atomic operations.
  static bool is_plain_store(const Entry& entry);
  /// A cell with the same history.
  Cell copy(const Cell& cell);
  /// "writes x at line 7 with no barrier between", of an access that was raced with.
  std::string describe(const Entry& earlier, unsigned thread, const Entry& now,
                       const std::string& place) const;

 private:
  using Clock = std::vector<std::uint32_t>;  ///< by thread: its time. Empty: all 0
  /// The effect of fences on a thread.
  struct Fenced {
    Clock known;     ///< accesses of other threads that come before its next
    Clock pending;   ///< which do after its next fence
    Clock released;  ///< that whoever reads its next relaxed write may learn of. Empty: none
  };

  const Entry* compare(Cell& cell, unsigned thread, const Entry& now);

  static constexpr std::uint64_t kMostEpoch = (std::uint64_t{1} << 35) - 1;

  std::uint32_t known(unsigned thread, unsigned other) const;
  bool is_ordered(const Entry& earlier, unsigned thread) const;
  bool find_race(const Cell& cell, unsigned thread, const Entry& now);
  void note(Cell& cell, unsigned thread, const Entry& now);
  static void join(Clock& clock, const Clock& other);

  unsigned threads_ = 0;
  Entry raced_;                       ///< result of access()
  std::uint64_t epoch_ = 0;           ///< counts barriers and blocks
  std::vector<std::uint32_t> times_;  ///< by thread
  /// By thread and lane of its warp: the time up to which that lane's accesses come before its own.
  std::vector<std::array<std::uint32_t, 32>> known_lanes_;
  std::vector<std::vector<Entry>> more_;
  std::vector<Fenced> fenced_;  ///< by thread. Empty: none has fenced
  std::unordered_map<std::uintptr_t, Clock> messages_;
};

}  // namespace triptych::cuda::emulation
