// The twin: a C++ model of the MMU that equals its RTL in every bit and every cycle.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// Throws std::invalid_argument for a machine out of range.
std::unique_ptr<Machine> open_twin(const MachineConfig& machine);

/// Report that a run of the program would give, without memory and values: time does not depend on
/// them. Throws as Machine::run.
RunReport estimate(const Program& program, const MachineConfig& machine,
                   const RunOptions& options = {});

}  // namespace triptych::mmu
