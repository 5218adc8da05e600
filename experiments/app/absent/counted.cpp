// The command of the part "counted" in a build without it.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parts.h"

namespace triptych::app {

void add_check_command(Command& app, Context&) {
  add_absent_command(app, kCheckCommand, "counted");
}

}  // namespace triptych::app
