// A profile as a timeline in Chrome's trace-event format, which Perfetto and chrome://tracing open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/executor.h"

namespace triptych {

/// A separate row below a device's steps for events inside of them.
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

/// Where the timeline shows a step, in seconds since the begin of the run.
struct TraceSpan {
  double start = 0;
  double time = 0;
};

/// A run among others, for example a rank's.
struct TracedRun {
  std::string name;  ///< before those of its devices, may be empty
  const Plan* plan = nullptr;
  std::vector<StepProfile> profile;
  std::vector<TraceLane> lanes;
  /// One for each step of the profile. None: each step is shown where it ran on its device's clock.
  std::vector<TraceSpan> spans;
  double start_s = 0;  ///< of the run, on the timeline
};

/// Length of a microsecond of a timeline, where nobody says otherwise.
inline constexpr std::string_view kDeviceClocks = "microseconds of each device's own clock";

/// One process per run and device, as below. the file contains `axis`.
std::string to_chrome_trace(const std::vector<TracedRun>& runs,
                            std::string_view axis = kDeviceClocks);

/// JSON with one process per device and one complete event per step: its node's name, and its
/// operator, kernel, operands, time and kind of time as arguments. Each lane is a thread of its
/// device's process. Events begin and end at whole nanoseconds, the resolution of Perfetto, so that
/// consecutive ones do not overlap.
std::string to_chrome_trace(const Plan& plan, const std::vector<StepProfile>& profile,
                            const std::vector<TraceLane>& lanes = {});

}  // namespace triptych
