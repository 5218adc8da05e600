// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/rank_trace.h"

namespace triptych::training {

void place_on_clock(const parallel::SimulatedTime& time, int rank, RankTrace& trace) {
  const auto& timeline = time.timelines()[static_cast<std::size_t>(rank)];
  trace.run.start_s = timeline.start_s;
  for (std::size_t i = 0; i < trace.computations.size(); ++i) {
    const auto& [start, end] = timeline.computations[trace.computations[i]];
    trace.run.profile[i].start = {start - timeline.start_s, TimeKind::Simulated};
    trace.run.profile[i].time = {end - start, TimeKind::Simulated};
  }
  auto& lane = trace.run.lanes.front();
  lane.events.clear();
  for (const auto& [label, interval] : timeline.collectives)
    lane.events.push_back(
        {label, interval.start_s - timeline.start_s, interval.end_s - interval.start_s});
  double computed = 0;
  for (const auto& [start, end] : timeline.computations) computed += end - start;
  trace.time = {time.ranks()[static_cast<std::size_t>(rank)].total_s - timeline.start_s,
                TimeKind::Simulated};
  trace.exposed = {trace.time.seconds - computed, TimeKind::Simulated};
}

}  // namespace triptych::training
