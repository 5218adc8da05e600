// Tokens for a program written without them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// Adds the waits and signals that order every two instructions of different units that touch the
/// same buffer row, accumulator row or DRAM byte, one of them writing. The waits that `program` has
/// already are requests: such an instruction also waits for the named unit's latest instruction.
Program synchronise(const Program& program, const MachineConfig& machine);

}  // namespace triptych::mmu
