// The command of the part "counted" in a build without it.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parts.h"

namespace triptych::app {

void describe_check(Command& command, Context&) { describe_absent(command, "counted"); }

}  // namespace triptych::app
