// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/collective_observer.h"

#include <utility>

namespace triptych::parallel {

RankClock::RankClock(SimulatedTime& time, int rank, std::function<double()> work_clock)
    : time_(time), rank_(rank), work_clock_(std::move(work_clock)) {}

void RankClock::computation_ends() {
  const double now = work_clock_();
  time_.compute(rank_, now - counted_s_);
  counted_s_ = now;
}

void RankClock::exchanged(const std::string& label, Instant, Instant) {
  marked_.push_back(time_.mark(rank_, label));
}

void RankClock::awaited() {
  time_.wait(rank_, marked_.front());
  marked_.pop_front();
}

void LaneRecorder::exchanged(const std::string& label, Instant start, Instant end) {
  events_.push_back(
      {label, Seconds(start.time_since_epoch()).count(), Seconds(end.time_since_epoch()).count()});
}

}  // namespace triptych::parallel
