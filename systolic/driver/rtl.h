// The RTL as far as this build has it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// Throws std::runtime_error when this build has no RTL of that machine.
std::unique_ptr<Machine> open_rtl(const MachineConfig& machine);

}  // namespace triptych::mmu
