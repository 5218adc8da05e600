// Which outputs stay on their device for the next kernel there, and never come to memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/plan.h"

namespace triptych {

/// Asks the kernels (Kernel::keep_output_for) about each activation that one node alone reads, the
/// next to run on the device, and fills the steps' `keeps_output`. All kernels must be prepared.
void keep_outputs(Plan& plan);

}  // namespace triptych
