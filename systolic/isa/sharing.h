// Bytes of one DRAM that the programs of several arrays have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// Throws std::invalid_argument, with the arrays and the bytes, if a program that check_program
/// accepts touches bytes which another one writes: nothing orders them. Also for another number of
/// programs than the machine has arrays.
void check_sharing(std::span<const Program> programs, const MachineConfig& machine);

/// The program with all of its places in DRAM `bytes` further. Throws std::invalid_argument beyond
/// 32 bits of address.
Program move_in_dram(Program program, std::uint64_t bytes);

}  // namespace triptych::mmu
