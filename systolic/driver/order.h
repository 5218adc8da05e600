// Order by tokens between units that touch one place, and reads of data that nobody wrote.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "systolic/isa/isa.h"
#include "systolic/isa/listing.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// The order of a program that check_program accepts. Throws std::invalid_argument "instruction 5
/// (matmul ...): ..." for the first instruction, in program order,
/// - that reads a buffer row, an accumulator or a byte of DRAM which no instruction before it has
///   written and no input of `arrays` holds, or
/// - that touches a place of an instruction of another unit, one of them writing, and no chain of
///   tokens makes it wait for that one. The units run concurrently: such a program computes by
///   luck, if it does.
/// or when nobody writes an element of an output.
/// Units keep their own order. Weights and column registers have no place in this, since hardware
/// orders them.
void check_order(const Program& program, const MachineConfig& machine,
                 std::span<const DramArray> arrays);

}  // namespace triptych::mmu
