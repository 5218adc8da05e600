// Conditions that a program meets before a machine takes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// Reason for which the machine's dispatcher would refuse the instruction. Empty: none.
std::string illegal(const Instruction& instruction, const MachineConfig& machine);

/// Throws std::invalid_argument "instruction 12 (matmul ...): problem" for a program that the
/// machine would refuse, that accesses DRAM beyond its end, uses a register before it is set, or
/// cannot be executed one instruction after the other because of its tokens and weight tiles.
void check_program(const Program& program, const MachineConfig& machine);

}  // namespace triptych::mmu
