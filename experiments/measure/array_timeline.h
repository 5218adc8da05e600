// A run on a systolic array as a timeline for Perfetto, on the array's own axis: a cycle is a
// microsecond.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "experiments/measure/array_trace.h"

namespace triptych::measure {

/// JSON of core/runtime/trace.h. A step begins when its device is free and its producers have
/// ended. A node of the array takes its cycles, one of the host the cycles that the array's clock
/// makes in the time that was measured, rounded up. Below the array's nodes lie lanes of its units,
/// of its issues and of its stalls. A unit with overlapping instructions has further ones ("compute
/// 2"). With `chosen` that node alone, from cycle 0 on.
std::string array_timeline(const Plan& plan, const std::vector<StepProfile>& profile,
                           const std::vector<ArrayNode>& nodes, const ArrayNode* chosen,
                           const mmu::MachineConfig& machine);

}  // namespace triptych::measure
