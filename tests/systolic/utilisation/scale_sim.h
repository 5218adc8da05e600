// Each node's cycles next to SCALE-Sim v2's count for the same product, weight-stationary and with
// memory that never stalls, and the parts of the difference.
//
// SCALE-Sim (scalesim/compute/systolic_compute_ws.py) gives each fold, a tile of R x C weights, R
// cycles to load them, then one per position, then R + C - 2 to drain. Its count is the number of
// the last cycle: folds (2 R + C + positions - 2) - 1.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/systolic/utilisation/measure.h"

namespace triptych {

/// `cycles` = scale_sim - overlapped + padding + first_load + waits + last_store.
struct ScaleSimLine {
  std::int64_t scale_sim = 0;
  std::int64_t overlapped = 0;  ///< weights loaded, pipeline filled and drained behind other work
  std::int64_t padding = 0;     ///< slots of tiles that only channels of padding make necessary
  std::int64_t first_load = 0;  ///< before the first slot
  std::int64_t waits = 0;       ///< between slots
  std::int64_t last_store = 0;  ///< after the last slot: drain and store
  std::int64_t cycles = 0;
};

std::int64_t scale_sim_cycles(const Product& product, const mmu::MachineConfig& machine);
ScaleSimLine compare_with_scale_sim(const NodeProgram& node, const mmu::MachineConfig& machine);
void print_scale_sim(const std::vector<NodeProgram>& nodes, const mmu::MachineConfig& machine);

}  // namespace triptych
