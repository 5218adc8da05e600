// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/simulated_time.h"

#include <algorithm>
#include <utility>

namespace triptych::parallel {

SimulatedTime::SimulatedTime(const Interconnect& interconnect, double add_bytes_per_s)
    : interconnect_(interconnect),
      add_bytes_per_s_(add_bytes_per_s),
      logs_(static_cast<std::size_t>(interconnect.world_size())),
      times_(logs_.size()) {}

void SimulatedTime::Log::on_steps(const Schedule& steps, std::span<const int> members,
                                  std::size_t element_bytes) {
  const auto size = static_cast<std::int64_t>(element_bytes);
  const auto first = static_cast<int>(schedule.steps.size());
  for (auto step : steps.steps) {
    if (step.peer >= 0) step.peer = members[static_cast<std::size_t>(step.peer)];
    if (step.send >= 0) step.send += first;
    for (auto* place : {&step.place, &step.source})
      place->range = {place->range.begin * size, place->range.end * size};
    schedule.steps.push_back(step);
  }
}

void SimulatedTime::compute(int rank, double seconds) {
  auto& log = logs_[static_cast<std::size_t>(rank)];
  const auto steps = log.schedule.steps.size();
  const auto marked = log.marks.empty() ? 0 : log.marks.back().end;
  if (steps > marked) log.waited = steps;
  log.delays.push_back({.before = steps, .seconds = seconds, .after = log.waited});
  times_[static_cast<std::size_t>(rank)].compute_s += seconds;
}

std::size_t SimulatedTime::mark(int rank, std::string label) {
  auto& log = logs_[static_cast<std::size_t>(rank)];
  log.marks.push_back({std::move(label), log.schedule.steps.size()});
  return log.marks.size();
}

void SimulatedTime::wait(int rank, std::size_t collectives) {
  auto& log = logs_[static_cast<std::size_t>(rank)];
  log.waited = std::max(log.waited, log.marks.at(collectives - 1).end);
}

void SimulatedTime::discard() {
  for (std::size_t r = 0; r < logs_.size(); ++r) {
    for (const auto& delay : logs_[r].delays) times_[r].compute_s -= delay.seconds;
    logs_[r] = {};
  }
}

void SimulatedTime::advance() {
  std::vector<Schedule> schedules;
  std::vector<std::vector<Delay>> delays;
  std::vector<std::vector<Log::Mark>> marks;
  for (std::size_t r = 0; r < logs_.size(); ++r) {
    auto log = std::exchange(logs_[r], {});
    log.delays.insert(log.delays.begin(), Delay{.before = 0, .seconds = times_[r].total_s});
    schedules.push_back(std::move(log.schedule));
    delays.push_back(std::move(log.delays));
    marks.push_back(std::move(log.marks));
  }
  auto price = parallel::price(schedules, 1, interconnect_, add_bytes_per_s_, delays);
  timelines_.assign(times_.size(), {});
  for (std::size_t r = 0; r < times_.size(); ++r) {
    auto& timeline = timelines_[r];
    timeline.start_s = std::exchange(times_[r].total_s, price.rank_s[r]);
    timeline.computations = std::move(price.computations[r]);
    timeline.computations.erase(timeline.computations.begin());
    std::size_t first = 0;
    for (auto& mark : marks[r]) {
      if (mark.end > first) {
        const Interval time = {price.steps[r][first].start_s, price.steps[r][mark.end - 1].end_s};
        timeline.collectives.push_back({std::move(mark.label), time});
      }
      first = mark.end;
    }
  }
  flights_ = std::move(price.flights);
}

}  // namespace triptych::parallel
