// Which values must be copied between devices, and before or after which step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/plan.h"

namespace triptych {

/// Fills `homes` and each step's `crossings` and `write_backs`; graph, devices and the steps'
/// nodes, devices and kernels must be set. A value is copied once to each device that reads it;
/// states live on device 0, and another device's update of one is copied back at once. Inputs and
/// constants never cross: they are given to every device that reads them.
void plan_crossings(Plan& plan);

}  // namespace triptych
