// The processes below this one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace triptych::parallel {

/// A process that has not ended, as /proc shows it.
struct ProcessState {
  pid_t id = 0, parent = 0;
  double processor_seconds = 0;     ///< its own, and of those that it started and waited for
  std::int64_t resident_bytes = 0;  ///< of memory, including shared memory
  std::int64_t threads = 0;
};

/// All that have `ancestor` above them and have not ended. `elsewhere` is for whoever asks often:
/// it collects the names of those that are not below the ancestor, and they are not read again.
/// Numbers return after some time, so that it must be cleared now and then.
std::vector<ProcessState> descendants(pid_t ancestor, std::set<std::string>* elsewhere = nullptr);

/// Ends all descendants of this process: by SIGTERM for a second, then by SIGKILL. From then on the
/// process adopts orphans (PR_SET_CHILD_SUBREAPER).
void end_descendants();

}  // namespace triptych::parallel
