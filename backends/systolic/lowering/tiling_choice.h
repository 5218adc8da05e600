// Sizes of a tiling that somebody fixes. The planner chooses those that are left open. As text:
// "pass=64,columns=2,buffer=4", each size a number or "all", and the dataflow by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/systolic/lowering/tiling.h"

namespace triptych::systolic {

/// All sizes of a tiling in text, `parts` and the channels of a buffer row among them.
std::string to_string(const Tiling& tiling, const Parts& parts, const StreamProblem& problem);

/// Throws InvalidArgument for a size that does not exist, is repeated or is none.
TilingChoice tiling_choice(std::string_view text);

}  // namespace triptych::systolic
