// A team on the one thread that a page has.
// SPDX-License-Identifier: Apache-2.0
#include "backends/host/thread_team.h"

#include "backends/host/flush_subnormals.h"
#include "backends/host/parallel.h"

namespace triptych {

ThreadTeam::ThreadTeam(int) {}
ThreadTeam::~ThreadTeam() = default;

void ThreadTeam::run(const void* work, void (*call)(const void* work)) {
  const FlushSubnormals flush;
  call(work);
}

int max_threads() { return 1; }
int thread_index() { return 0; }
void internal::run_on_team(const Loop& loop) { loop.call(loop.body, 0, loop.count); }
int usable_processors() { return 1; }

}  // namespace triptych
