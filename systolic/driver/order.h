// Order that tokens give to units that touch one place, and reads of what nobody wrote.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// Bytes of DRAM that hold something before a program starts, or that it is to write.
struct DramSpan {
  std::uint64_t address = 0, bytes = 0;
  std::string name;  ///< for messages
};

/// The order of a program that check_program accepts. Throws std::invalid_argument "instruction 5
/// (matmul ...): ..." for the first instruction, in program order,
/// - that reads a buffer row, an accumulator or a byte of DRAM which neither an instruction before
///   it nor `inputs` has written, or
/// - that touches what an instruction of another unit touches, one of them writing, and no chain of
///   tokens makes it wait for that one. The units run beside each other: such a program computes by
///   luck, if it does;
/// or when a byte of `outputs` is written by nobody.
/// Units keep their own order; weights and column registers have no place in this, since hardware
/// orders them.
void check_order(const Program& program, const MachineConfig& machine,
                 std::span<const DramSpan> inputs, std::span<const DramSpan> outputs = {});

}  // namespace triptych::mmu
