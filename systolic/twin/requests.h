// The parts of the timing model that units share: queues of instructions and of tokens, streams of
// DRAM requests, times of tiles and of matmuls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace triptych::mmu {

using Cycle = std::uint64_t;
/// Depends on an event that has not been simulated yet.
inline constexpr Cycle kUnknown = std::numeric_limits<Cycle>::max();

/// A unit's queue: a ring of the instructions accepted last.
class Queue {
 public:
  struct Entry {
    std::size_t instruction = 0;
    Cycle accepted = 0, popped = 0;
  };

  explicit Queue(std::size_t depth) : ring_(depth) {}

  /// The first cycle from `cycle` on with space for one more.
  Cycle room(Cycle cycle) const {
    if (accepted_ < ring_.size()) return cycle;
    return accepted_ - popped_ < ring_.size() ? std::max(cycle, ring_[tail_].popped + 1) : kUnknown;
  }
  void accept(std::size_t instruction, Cycle cycle) {
    ring_[tail_] = {instruction, cycle, kUnknown};
    tail_ = after(tail_);
    ++accepted_;
  }
  void pop(Cycle cycle) {
    ring_[head_].popped = last_pop_ = cycle;
    head_ = after(head_);
    ++popped_;
  }

  bool waiting() const { return popped_ < accepted_; }
  std::size_t head() const { return ring_[head_].instruction; }
  Cycle head_seen() const { return ring_[head_].accepted + 1; }
  std::size_t popped() const { return popped_; }
  Cycle last_pop() const { return last_pop_; }

 private:
  std::size_t after(std::size_t i) const { return i + 1 == ring_.size() ? 0 : i + 1; }

  std::vector<Entry> ring_;
  std::size_t accepted_ = 0, popped_ = 0;  ///< ever
  std::size_t tail_ = 0, head_ = 0;        ///< where the next ones of both lie
  Cycle last_pop_ = 0;
};

/// The token counter of one (giver, taker): when each token is visible and when the taker consumed
/// it.
struct TokenQueue {
  std::vector<Cycle> given;
  std::vector<Cycle> taken;

  Cycle next() const { return taken.size() < given.size() ? given[taken.size()] : kUnknown; }
  /// True when the counter would ever have passed 255.
  bool overflowed() const {
    for (std::size_t n = 255; n < given.size(); ++n)
      if (n - 255 >= taken.size() || taken[n - 255] >= given[n]) return true;
    return false;
  }
};

/// The requests of the instruction that a unit executes: `per_line` side by side in each of
/// `lines`. The walk of a store replaces `address`.
struct RequestStream {
  std::size_t instruction = 0;
  std::uint64_t remaining = 0;  ///< requests not granted yet
  std::uint32_t bytes = 0;
  std::uint32_t address = 0, line_address = 0, pitch = 0;
  std::uint32_t per_line = 1, left_in_line = 1;
  Cycle presented = kUnknown;  ///< from when the next request stands at the port

  void start(std::size_t index, std::uint64_t count, std::uint32_t request_bytes,
             std::uint32_t first_address, Cycle first_cycle) {
    *this = RequestStream{};
    instruction = index;
    remaining = count;
    bytes = request_bytes;
    address = line_address = first_address;
    presented = first_cycle;
  }
  void next_address() {
    if (--left_in_line > 0) {
      address += bytes;
      return;
    }
    left_in_line = per_line;
    address = line_address += pitch;
  }
};

/// At most 128 requests of a unit are outstanding: the reply cycles of the last 128.
class Outstanding {
 public:
  /// From when one more request may be presented.
  Cycle room() const { return count_ < kLimit ? 0 : arrivals_[count_ % kLimit] + 1; }
  void add(Cycle arrival) { arrivals_[count_++ % kLimit] = arrival; }
  /// The first cycle from `cycle` on without the arrival of a requested one. No arrival before it
  /// matters any more.
  Cycle first_without(Cycle cycle) {
    passed_ = std::max(passed_, count_ - std::min(count_, kLimit));
    while (passed_ < count_ && arrivals_[passed_ % kLimit] < cycle) ++passed_;
    for (auto i = passed_; i < count_ && arrivals_[i % kLimit] == cycle; ++i) ++cycle;
    return cycle;
  }

 private:
  static constexpr std::uint64_t kLimit = 128;
  std::array<Cycle, kLimit> arrivals_{};
  std::uint64_t count_ = 0;
  std::uint64_t passed_ = 0;  ///< arrivals before the cycle asked about last
};

struct TileTimes {
  std::uint32_t rows = 0, columns = 0;
  Cycle there = kUnknown;  ///< in the FIFO
  Cycle moved = kUnknown;  ///< first cycle of its way into the array
  bool stream = false;     ///< it waits for an output-stationary matmul
};

struct MatmulTimes {
  Cycle start = 0, left = 0;  ///< `left`: first cycle after its flight
  std::uint32_t accumulator = 0, count = 0;
  std::uint32_t drain_slots = 0;  ///< before its first result leaves
};

}  // namespace triptych::mmu
