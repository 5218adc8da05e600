// A profile as a timeline in Chrome's trace-event format, which Perfetto and chrome://tracing open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/runtime/executor.h"

namespace triptych {

/// A row of its own below a device's steps: what went on inside of them.
struct TraceLane {
  struct Event {
    std::string name;
    double start = 0;  ///< seconds of the device's clock since the begin of the run
    double time = 0;
  };
  std::size_t device = 0;
  std::string name;
  std::vector<Event> events;
};

/// A run among others, for example a rank's.
struct TracedRun {
  std::string name;  ///< before those of its devices; may be empty
  const Plan* plan = nullptr;
  std::vector<StepProfile> profile;
  std::vector<TraceLane> lanes;
  double start_s = 0;  ///< of the run, on the timeline
};

/// One process per run and device, as below.
std::string to_chrome_trace(const std::vector<TracedRun>& runs);

/// JSON with one process per device and one complete event per step: its node's name, and its
/// operator, kernel, operands and kind of time as arguments. Times are microseconds of each
/// device's own clock. Each lane is a thread of its device's process.
std::string to_chrome_trace(const Plan& plan, const std::vector<StepProfile>& profile,
                            const std::vector<TraceLane>& lanes = {});

}  // namespace triptych
