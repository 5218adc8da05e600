// The twin of several arrays on one DRAM: equals mmu_arrays in every bit and every cycle.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// Throws std::invalid_argument for a machine out of range.
std::unique_ptr<Arrays> open_twin_arrays(const MachineConfig& machine);

/// Reports that a run of the programs would give, without memory and values. Throws as Arrays::run.
std::vector<RunReport> estimate_arrays(std::span<const Program> programs,
                                       const MachineConfig& machine,
                                       const RunOptions& options = {});

}  // namespace triptych::mmu
