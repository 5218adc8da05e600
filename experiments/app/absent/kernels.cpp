// The command of the part "kernels" in a build without it.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parts.h"

namespace triptych::app {

void add_kernel_command(Command& app, Context&) {
  add_absent_command(app, kKernelCommand, "kernels");
}

}  // namespace triptych::app
