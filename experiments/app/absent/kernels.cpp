// The command of the part "kernels" in a build without it.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parts.h"

namespace triptych::app {

void describe_kernel(Command& command, Context&) { describe_absent(command, "kernels"); }

}  // namespace triptych::app
