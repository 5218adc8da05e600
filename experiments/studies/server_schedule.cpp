// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/server_schedule.h"

namespace triptych::studies {

std::vector<parallel::Schedule> server_schedules(int ranks, std::int64_t elements) {
  const parallel::BufferRange all = {parallel::Memory::Data, {0, elements}};
  std::vector<parallel::Schedule> schedules;
  for (int rank = 0; rank < ranks; ++rank) {
    parallel::ScheduleBuilder builder;
    if (rank > 0) {
      builder.send(0, all);
      builder.receive(0, all);
    }
    for (int worker = 1; rank == 0 && worker < ranks; ++worker) builder.receive_add(worker, all);
    for (int worker = 1; rank == 0 && worker < ranks; ++worker) builder.send(worker, all);
    schedules.push_back(builder.finish());
  }
  return schedules;
}

}  // namespace triptych::studies
