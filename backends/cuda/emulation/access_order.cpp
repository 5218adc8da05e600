// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/access_order.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "backends/cuda/emulation/block.h"

namespace triptych::cuda::emulation {
namespace {

using Entry = AccessOrder::Entry;

constexpr std::size_t kMostMore = (std::size_t{1} << 28) - 1;
constexpr auto kPlain = static_cast<std::uint32_t>(Strength::Plain);
constexpr auto kVolatile = static_cast<std::uint32_t>(Strength::Volatile);

bool both_volatile(const Entry& a, const Entry& b) {
  return a.strength == kVolatile && b.strength == kVolatile;
}

/// True when the two are a race unless something orders them.
bool conflict(const Entry& earlier, const Entry& now) {
  if (earlier.writes == 0 && now.writes == 0) return false;
  if (earlier.strength == kPlain || now.strength == kPlain) return true;
  return both_volatile(earlier, now) && earlier.warp == now.warp;
}

/// True when all that is in conflict with the earlier access is so with the later one.
bool covers(const Entry& now, const Entry& earlier) {
  if (earlier.strength > now.strength || earlier.writes > now.writes) return false;
  return !both_volatile(earlier, now) || earlier.warp == now.warp;
}

/// True when two warps have read the place. Without fences a write by anyone is a race then, and
/// further readers change nothing.
bool is_read_by_warps(const AccessOrder::Cell& cell) {
  const auto& [last, first] = cell.entries;
  return first.lanes != 0 && first.warp != last.warp && first.strength == kPlain &&
         last.strength == kPlain;
}

}  // namespace

void AccessOrder::begin_block(unsigned threads) {
  ++epoch_;
  threads_ = threads;
  times_.assign(threads, 1);
  known_lanes_.assign(threads, {});
  more_.clear();
  fenced_.clear();
  messages_.clear();
}

void AccessOrder::barrier_passed() {
  ++epoch_;
  more_.clear();
}

void AccessOrder::warp_synchronised(unsigned warp, std::uint32_t mask) {
  const auto first = warp * kWarp;
  std::array<std::uint32_t, 32> joined{};
  Clock fenced;
  const auto each = [&](const auto& use) {
    for (auto rest = mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (first + lane < threads_) use(first + lane, lane);
    }
  };
  each([&](unsigned thread, unsigned lane) {
    for (unsigned i = 0; i < kWarp; ++i) joined[i] = std::max(joined[i], known_lanes_[thread][i]);
    joined[lane] = std::max(joined[lane], times_[thread]);
    if (!fenced_.empty()) join(fenced, fenced_[thread].known);
  });
  each([&](unsigned thread, unsigned) {
    known_lanes_[thread] = joined;
    ++times_[thread];
    if (!fenced_.empty()) fenced_[thread].known = fenced;
  });
}

void AccessOrder::join(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

void AccessOrder::fence(unsigned thread) {
  fenced_.resize(threads_);
  auto& mine = fenced_[thread];
  join(mine.known, mine.pending);
  mine.pending.clear();
  mine.released.resize(threads_);
  for (unsigned other = 0; other < threads_; ++other) mine.released[other] = known(thread, other);
  mine.released[thread] = times_[thread]++;
}

void AccessOrder::relaxed_access(unsigned thread, std::uintptr_t address, bool reads, bool writes) {
  if (fenced_.empty()) return;
  auto& mine = fenced_[thread];
  const auto found = messages_.find(address);
  if (reads && found != messages_.end()) join(mine.pending, found->second);
  if (!writes) return;
  // A write without a read ends the marks that others have left there.
  if (!reads && found != messages_.end()) found->second.clear();
  if (!mine.released.empty()) join(messages_[address], mine.released);
}

std::uint32_t AccessOrder::known(unsigned thread, unsigned other) const {
  const auto by_warp =
      thread / kWarp == other / kWarp ? known_lanes_[thread][other % kWarp] : std::uint32_t{0};
  if (fenced_.empty() || other >= fenced_[thread].known.size()) return by_warp;
  return std::max(by_warp, fenced_[thread].known[other]);
}

/// True when all of the earlier accesses come before the thread's present action.
bool AccessOrder::is_ordered(const Entry& earlier, unsigned thread) const {
  for (auto rest = earlier.lanes; rest != 0; rest &= rest - 1) {
    const auto other = earlier.warp * kWarp + static_cast<unsigned>(std::countr_zero(rest));
    if (other != thread && known(thread, other) < earlier.time) return false;
  }
  return true;
}

const AccessOrder::Entry* AccessOrder::compare(Cell& cell, unsigned thread, const Entry& now) {
  if (cell.written == 0 && now.writes == 0 && fenced_.empty() && is_read_by_warps(cell)) {
    return nullptr;
  }
  const bool has_raced = find_race(cell, thread, now);
  note(cell, thread, now);
  cell.written |= now.writes;
  return has_raced ? &raced_ : nullptr;
}

bool AccessOrder::is_plain_store(const Entry& entry) {
  return entry.writes != 0 && entry.strength == kPlain;
}

/// True with the earlier access in `raced_`.
bool AccessOrder::find_race(const Cell& cell, unsigned thread, const Entry& now) {
  bool found = false;
  const auto is_final = [&](const Entry& earlier) {
    if (earlier.lanes == 0 || !conflict(earlier, now) || is_ordered(earlier, thread)) return false;
    found = true;
    raced_ = earlier;
    return !is_plain_store(earlier);
  };
  if (std::ranges::any_of(cell.entries, is_final)) return true;
  if (cell.more != 0) (void)std::ranges::any_of(more_[cell.more - 1], is_final);
  return found;
}

void AccessOrder::note(Cell& cell, unsigned thread, const Entry& now) {
  Entry* free = nullptr;
  const auto joins = [&](Entry& entry) {
    if (entry.lanes != 0 && same_kind(entry, now)) {
      entry.lanes |= now.lanes;
      entry.line = now.line;
      return true;
    }
    if (entry.lanes != 0 && covers(now, entry) && is_ordered(entry, thread)) entry.lanes = 0;
    if (entry.lanes == 0 && free == nullptr) free = &entry;
    return false;
  };
  for (auto& entry : cell.entries) {
    if (joins(entry)) return;
  }
  if (cell.more != 0) {
    for (auto& entry : more_[cell.more - 1]) {
      if (joins(entry)) return;
    }
  }
  if (free != nullptr) {
    *free = now;
    return;
  }
  if (cell.more == 0) {
    more_.emplace_back();
    cell.more = more_.size() & kMostMore;
  }
  // Lanes of one warp come one after another: the last entry is the first to be looked at.
  more_[cell.more - 1].push_back(cell.entries[0]);
  cell.entries[0] = now;
}

AccessOrder::Cell AccessOrder::copy(const Cell& cell) {
  Cell copy = cell;
  if (cell.epoch == epoch_ && cell.more != 0) {
    auto entries = more_[cell.more - 1];
    more_.push_back(std::move(entries));
    copy.more = more_.size() & kMostMore;
  }
  return copy;
}

std::string AccessOrder::describe(const Entry& earlier, unsigned thread, const Entry& now,
                                  const std::string& place) const {
  const char* verb = earlier.writes != 0 ? "writes" : "reads";
  const auto line = static_cast<unsigned>(earlier.line);
  if (earlier.warp != thread / kWarp) {
    return fmt::format("{} {} at line {} with no barrier between", verb, place, line);
  }
  if (both_volatile(earlier, now)) {
    return fmt::format(
        "{} {} at line {} with no barrier between: volatile does not order the lanes of a warp; "
        "put __syncwarp() between the two",
        verb, place, line);
  }
  return fmt::format(
      "{} {} at line {} with no barrier between (__syncwarp() orders the lanes of a warp; shuffles "
      "and votes do not)",
      verb, place, line);
}

}  // namespace triptych::cuda::emulation
