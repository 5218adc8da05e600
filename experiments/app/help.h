// The help of a command as text and as JSON. Both are made from the descriptions of its options.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "experiments/app/command_line.h"
#include "experiments/page/json.h"

namespace triptych::app {

/// For the width of the terminal, at most 100 columns.
std::string help_text(const Command& command);

/// The command and those below it, one object each (docs/reference/json.md).
page::Json help_json(const Command& command);

/// "triptych bench conv [OPTIONS]".
std::string usage_line(const Command& command);

}  // namespace triptych::app
