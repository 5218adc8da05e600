// The third model of the machine: one object that steps through docs/reference/mmu.md cycle by
// cycle, in values and in time. Slow and written to be read. It shares nothing with the twin but
// the arithmetic of one multiply-add and the DRAM model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

std::unique_ptr<Machine> open_stepper(const MachineConfig& machine);

}  // namespace triptych::mmu
