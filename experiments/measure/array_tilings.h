// Tiles into which a systolic array's lowering cuts each node of a plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/page/json.h"
#include "experiments/training/device_set.h"

namespace triptych::measure {

/// One node's tiles, as --tiling takes them, and the cycles of its program (simulated).
struct ArrayTiling {
  std::string node;
  std::string sizes;
  std::optional<std::uint64_t> cycles;
};

/// One entry for every node that runs on an array, in order of the plan. Cycles where `counts`,
/// which takes seconds where a small array has a large network.
std::vector<ArrayTiling> array_tilings(const Plan& plan, bool counts);

/// The entries of one plan as JSON, by node. Those of the planner's own choice next to them if
/// `planned` has any, in the same order.
page::Json tilings_json(const std::vector<ArrayTiling>& tilings,
                        const std::vector<ArrayTiling>& planned);
/// The same as a table. Nothing without entries.
void print_tilings(const std::vector<ArrayTiling>& tilings,
                   const std::vector<ArrayTiling>& planned);

}  // namespace triptych::measure
