// SPDX-License-Identifier: Apache-2.0
#include "parallel/collectives/symbolic.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>

#include "core/base/error.h"

namespace triptych::parallel {

TermId Terms::contribution(int rank) {
  const auto [entry, is_new] = sums_.try_emplace({-1, rank}, static_cast<TermId>(nodes_.size()));
  if (is_new) nodes_.push_back({.rank = rank});
  return entry->second;
}

int Terms::first_rank(TermId term) const {
  while (node(term).rank < 0) term = node(term).left;
  return node(term).rank;
}

TermId Terms::sum(TermId a, TermId b) {
  if (first_rank(b) < first_rank(a)) std::swap(a, b);
  const auto [entry, is_new] = sums_.try_emplace({a, b}, static_cast<TermId>(nodes_.size()));
  if (is_new) nodes_.push_back({.left = a, .right = b});
  return entry->second;
}

std::string Terms::text(TermId term) const {
  const auto& [rank, left, right] = node(term);
  return rank >= 0 ? std::to_string(rank) : fmt::format("({}+{})", text(left), text(right));
}

namespace {

constexpr TermId kUnset = -1;

/// A rank on its way through its schedule.
struct Rank {
  const Schedule* schedule = nullptr;
  std::size_t at = 0;
  std::vector<TermId> data, scratch;
  std::map<int, std::deque<int>> offered;  ///< to a peer: numbers of sends that it has not taken

  bool done() const { return at == schedule->steps.size(); }
  const ScheduleStep& step() const { return schedule->steps[at]; }
  std::span<TermId> memory(const BufferRange& place) {
    auto& all = place.memory == Memory::Data ? data : scratch;
    return std::span(all).subspan(static_cast<std::size_t>(place.range.begin),
                                  static_cast<std::size_t>(place.range.size()));
  }
};

class SymbolicRanks {
 public:
  SymbolicRanks(std::span<const Schedule> schedules, std::int64_t elements, Terms& terms)
      : terms_(terms), ranks_(schedules.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].schedule = &schedules[r];
      ranks_[r].data.assign(static_cast<std::size_t>(elements),
                            terms.contribution(static_cast<int>(r)));
      ranks_[r].scratch.assign(static_cast<std::size_t>(schedules[r].scratch_elements), kUnset);
    }
  }

  std::vector<std::vector<TermId>> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& rank : ranks_) {
        while (!rank.done() && advance(rank)) moved = true;
      }
    }
    std::vector<std::vector<TermId>> results;
    for (auto& rank : ranks_) {
      if (!rank.done()) fail(rank, "waits for ever");
      for (const auto& [peer, sends] : rank.offered) {
        if (!sends.empty())
          fail(rank, fmt::format("ends, but rank {} took less than it sent", peer));
      }
      results.push_back(std::move(rank.data));
    }
    return results;
  }

 private:
  [[noreturn]] void fail(const Rank& rank, const std::string& what) const {
    throw InvalidArgument(fmt::format("rank {} at step {} of {}: {}", &rank - ranks_.data(),
                                      rank.at, rank.schedule->steps.size(), what));
  }

  /// One step, unless it has to wait.
  bool advance(Rank& rank) {
    const ScheduleStep& step = rank.step();
    switch (step.kind) {
      case ScheduleStep::Kind::Send:
        rank.offered[step.peer].push_back(static_cast<int>(rank.at));
        break;
      case ScheduleStep::Kind::Wait:
        if (std::ranges::count(rank.offered[step.peer], step.send) > 0) return false;
        break;
      case ScheduleStep::Kind::Copy:
      case ScheduleStep::Kind::Add:
        write(rank, step, rank.memory(step.source));
        break;
      case ScheduleStep::Kind::Receive:
      case ScheduleStep::Kind::ReceiveAdd:
        if (!receive(rank, step)) return false;
    }
    ++rank.at;
    return true;
  }

  bool receive(Rank& rank, const ScheduleStep& step) {
    const int self = static_cast<int>(&rank - ranks_.data());
    auto& sender = ranks_.at(static_cast<std::size_t>(step.peer));
    auto& sends = sender.offered[self];
    if (sends.empty()) return false;
    const ScheduleStep& sent = sender.schedule->steps[static_cast<std::size_t>(sends.front())];
    if (sent.place.range.size() != step.place.range.size()) {
      fail(rank, fmt::format("expects {} elements of rank {}, which sends {}",
                             step.place.range.size(), step.peer, sent.place.range.size()));
    }
    write(rank, step, sender.memory(sent.place));
    sends.pop_front();
    return true;
  }

  void write(Rank& rank, const ScheduleStep& step, std::span<const TermId> source) {
    for (const auto& [peer, sends] : rank.offered) {
      for (const int send : sends) {
        const ScheduleStep& sent = rank.schedule->steps[static_cast<std::size_t>(send)];
        if (sent.place.overlaps(step.place))
          fail(rank, fmt::format("overwrites what it sends to rank {} in step {}", peer, send));
      }
    }
    const bool adds =
        step.kind == ScheduleStep::Kind::Add || step.kind == ScheduleStep::Kind::ReceiveAdd;
    const auto target = rank.memory(step.place);
    for (std::size_t i = 0; i < target.size(); ++i) {
      if (source[i] == kUnset || (adds && target[i] == kUnset))
        fail(rank, "reads scratch memory that nothing was written to");
      target[i] = adds ? terms_.sum(target[i], source[i]) : source[i];
    }
  }

  Terms& terms_;
  std::vector<Rank> ranks_;
};

}  // namespace

std::vector<std::vector<TermId>> run_symbolically(std::span<const Schedule> schedules,
                                                  std::int64_t elements, Terms& terms) {
  return SymbolicRanks(schedules, elements, terms).run();
}

}  // namespace triptych::parallel
