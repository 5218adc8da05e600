// A profile as a timeline in Chrome's trace-event format, which Perfetto and chrome://tracing open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/runtime/executor.h"

namespace triptych {

/// JSON with one process per device and one complete event per step: its node's name, and its
/// operator, kernel, operands and kind of time as arguments. Times are microseconds of each
/// device's own clock.
std::string to_chrome_trace(const Plan& plan, const std::vector<StepProfile>& profile);

}  // namespace triptych
