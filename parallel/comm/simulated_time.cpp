// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/simulated_time.h"

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
  log.delays.push_back({log.schedule.steps.size(), seconds});
  times_[static_cast<std::size_t>(rank)].compute_s += seconds;
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
  for (std::size_t r = 0; r < logs_.size(); ++r) {
    auto& log = logs_[r];
    log.delays.insert(log.delays.begin(), {0, times_[r].total_s});
    schedules.push_back(std::exchange(log.schedule, {}));
    delays.push_back(std::exchange(log.delays, {}));
  }
  auto price = parallel::price(schedules, 1, interconnect_, add_bytes_per_s_, delays);
  for (std::size_t r = 0; r < times_.size(); ++r) times_[r].total_s = price.rank_s[r];
  flights_ = std::move(price.flights);
}

}  // namespace triptych::parallel
