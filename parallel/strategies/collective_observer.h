// Whoever looks on while a rank computes and communicates: a simulated clock, a trace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "parallel/comm/simulated_time.h"

namespace triptych::parallel {

/// Is told in the rank's own thread, of exchanges in the thread that makes them.
class CollectiveObserver {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  virtual ~CollectiveObserver() = default;
  /// The rank computed until now, since the last call of this or the next.
  virtual void computation_ends() {}
  /// The rank computes from now on.
  virtual void computation_begins() {}
  /// The messages of one more collective were exchanged.
  virtual void exchanged(const std::string& label, Instant start, Instant end) {
    static_cast<void>(label), static_cast<void>(start), static_cast<void>(end);
  }
  /// The rank waited for the oldest collective that was exchanged and not waited for.
  virtual void awaited() {}
};

/// The simulated clock of one rank, which runs with its computation alone.
class RankClock : public CollectiveObserver {
 public:
  /// `work_clock` tells the seconds that the rank has computed, in which other ranks on the same
  /// processor must not count; the rank's thread asks.
  RankClock(SimulatedTime& time, int rank, std::function<double()> work_clock);

  /// Sees the messages of the rank's communicators.
  CommunicationObserver* messages() const { return time_.observer(rank_); }
  void computation_ends() override;
  void computation_begins() override { counted_s_ = work_clock_(); }
  void exchanged(const std::string& label, Instant start, Instant end) override;
  void awaited() override;

 private:
  SimulatedTime& time_;
  int rank_;
  std::function<double()> work_clock_;
  double counted_s_ = 0;            ///< of the work clock
  std::deque<std::size_t> marked_;  ///< collectives not waited for, oldest first
};

/// A collective on a rank's lane, by the seconds of std::chrono::steady_clock.
struct LaneEvent {
  std::string label;
  double start_s = 0, end_s = 0;
};

/// Keeps an event of every exchange.
class LaneRecorder : public CollectiveObserver {
 public:
  void exchanged(const std::string& label, Instant start, Instant end) override;
  /// In their order, of collectives that the rank has waited for.
  const std::vector<LaneEvent>& events() const { return events_; }

 private:
  std::vector<LaneEvent> events_;
};

}  // namespace triptych::parallel
