// The command of the part "labs" in a build without it.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parts.h"

namespace triptych::app {

void describe_lab(Command& command, Context&) { describe_absent(command, "labs"); }

}  // namespace triptych::app
