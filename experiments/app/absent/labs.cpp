// The command of the part "labs" in a build without it.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parts.h"

namespace triptych::app {

void add_lab_command(Command& app, Context&) { add_absent_command(app, kLabCommand, "labs"); }

}  // namespace triptych::app
