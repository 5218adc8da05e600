// Random instructions of the vector unit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"
#include "tests/systolic/cosim/dice.h"

namespace triptych::mmu {

Instruction random_vector(const MachineConfig& machine, Dice& dice);
/// Fills the whole vector memory from DRAM.
Instruction load_all_vectors(const MachineConfig& machine, Dice& dice);
/// Shows it in DRAM.
Instruction store_all_vectors(const MachineConfig& machine, Dice& dice);
/// Writes numbers that arithmetic treats apart where a program's vector loads read.
void write_operands(const Program& program, std::mt19937& random, std::vector<std::byte>& memory);

}  // namespace triptych::mmu
