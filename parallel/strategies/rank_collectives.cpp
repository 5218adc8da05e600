// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/rank_collectives.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

#include "parallel/strategies/collective_kernels.h"

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

using Clock = std::chrono::steady_clock;

RankCollectives::RankCollectives(Communicator& all, const Mesh& mesh, Overlap overlap)
    : overlap_(overlap) {
  if (mesh.empty())
    for (const char* name : {"dp", "pp", "tp"}) axes_[name] = &all;
  for (const auto& axis : mesh.axes()) {
    lines_.push_back(std::make_unique<Communicator>(
        all.subgroup(mesh.line(axis.name, all.rank()), static_cast<int>(lines_.size()) + 1)));
    axes_[axis.name] = lines_.back().get();
  }
}

RankCollectives::~RankCollectives() = default;

std::size_t RankCollectives::reserve(std::size_t size) {
  const auto before = message_ ? message_->bytes().size() : 0;
  if (size <= before) return 0;
  message_ = memory().allocate(size);
  return size - before;
}

std::shared_ptr<MessageRing> RankCollectives::ring(const std::string& name, std::size_t bytes,
                                                   std::size_t most) {
  auto& kept = rings_[name];
  auto ring = kept.lock();
  if (!ring) kept = ring = std::make_shared<MessageRing>(memory(), bytes, most);
  return ring;
}

void RankCollectives::exchange(const std::string& label, const std::function<void()>& messages,
                               const Observers& observers) {
  const auto start = Clock::now();
  messages();
  const auto end = Clock::now();
  for (const auto& observer : observers) observer->exchanged(label, start, end);
}

void RankCollectives::run(const std::string& label, const std::function<void()>& messages,
                          const std::function<void()>& deliver) {
  ++begun_;
  if (overlaps() && !simulated_) {
    if (!lane_) lane_ = std::make_unique<CommunicationLane>();
    lane_->start(
        [&label, messages, observers = observers_] { exchange(label, messages, observers); });
    pending_.push_back({deliver, ++started_});
    return;
  }
  // Simulated clocks are concurrent, in any interleaving of the threads.
  const auto start = Clock::now();
  exchange(label, messages, observers_);
  exposed_ += Clock::now() - start;
  if (overlaps()) {
    pending_.push_back({deliver, 0});
  } else {
    finish_one(deliver);
  }
}

void RankCollectives::finish_one(const std::function<void()>& deliver) {
  for (const auto& observer : observers_) observer->awaited();
  deliver();
}

void RankCollectives::finish(std::size_t behind) {
  if (pending_.size() <= behind) return;
  computation_ends();
  for (; pending_.size() > behind; pending_.pop_front()) {
    const auto& [deliver, number] = pending_.front();
    if (number > 0) {
      const auto start = Clock::now();
      lane_->wait(number);
      exposed_ += Clock::now() - start;
    }
    finish_one(deliver);
  }
  computation_begins();
}

void RankCollectives::computes() { axes_.begin()->second->tell_busy("computing"); }

void RankCollectives::finish_collective(std::uint64_t number) {
  const auto behind = static_cast<std::size_t>(begun_ - number);
  finish(behind);
}

Communicator* RankCollectives::find(const std::string& axis) const {
  const auto found = axes_.find(axis);
  return found == axes_.end() ? nullptr : found->second;
}

std::string RankCollectives::axes() const {
  std::string names;
  for (const auto& [name, communicator] : axes_)
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
  return names;
}

void RankCollectives::simulate(const std::shared_ptr<RankClock>& clock) {
  simulated_ = true;
  observe(clock);
  for (const auto& [name, communicator] : axes_) communicator->observe(clock->messages());
}

void RankCollectives::observe(std::shared_ptr<CollectiveObserver> observer) {
  observers_.push_back(std::move(observer));
}

void RankCollectives::forget(const std::shared_ptr<CollectiveObserver>& observer) {
  std::erase(observers_, observer);
}

void RankCollectives::computation_ends() {
  for (const auto& observer : observers_) observer->computation_ends();
}

void RankCollectives::computation_begins() {
  for (const auto& observer : observers_) observer->computation_begins();
}

KernelTable RankCollectives::kernels() const { return collective_kernels(); }

}  // namespace triptych::parallel
