// Links between devices by their names, from the standards that define them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "experiments/machines/machine_figures.h"

namespace triptych::machines {

/// "pcie3x8": generation 3 to 5, 1 to 16 lanes, one direction, as its standard states the rate of a
/// lane and its code. Else the name of a link in the machine's figures ("rank"). The latency of the
/// former is 0: no standard states it. Throws InvalidArgument with the names that exist.
Link link_of(std::string_view name, const MachineFigures& figures);

}  // namespace triptych::machines
