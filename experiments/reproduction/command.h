// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/cli/options.h"

namespace triptych::reproduction {

/// Adds `triptych reproduce`.
void add_reproduce_command(cli::Command& app, cli::Context& context);

}  // namespace triptych::reproduction
