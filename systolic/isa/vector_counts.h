// The actions of the vector unit in a program, which depend on its instructions alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include "systolic/isa/machine.h"
#include "systolic/isa/simulator.h"
#include "systolic/isa/vector_operations.h"

namespace triptych::mmu {

inline bool is_vector_instruction(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  return opcode == Opcode::VectorLoad || opcode == Opcode::VectorStore ||
         opcode == Opcode::VectorOp;
}

/// Actions of an operation, its cycles aside.
inline VectorCounts vector_actions(const VectorOp& op, std::uint64_t columns) {
  const VectorOperationInfo& info = vector_operation(op.operation);
  unsigned from_memory = info.reads;
  if (op.accumulators) from_memory &= ~kReadsA;
  if (op.constant) from_memory &= ~kReadsB;
  const std::uint64_t values = op.count * columns;
  VectorCounts counts;
  counts.reads = values * static_cast<unsigned>(std::popcount(from_memory));
  counts.writes = values;
  if (info.work == VectorWork::Add) counts.adds = values;
  if (info.work == VectorWork::Multiply) counts.multiplies = values;
  if (info.work == VectorWork::Fma) counts.fmas = values;
  if (info.work == VectorWork::Other) counts.others = values;
  return counts;
}

/// Values of the accumulators that the unit reads.
inline std::uint64_t vector_sums(const Program& program, const MachineConfig& machine) {
  std::uint64_t rows = 0;
  for (const Instruction& instruction : program) {
    if (instruction.opcode() != Opcode::VectorOp) continue;
    const auto op = decode<VectorOp>(instruction);
    if (op.accumulators) rows += op.count;
  }
  return rows * machine.columns;
}

/// Those of all instructions.
inline VectorCounts vector_actions(const Program& program, const MachineConfig& machine) {
  VectorCounts counts;
  for (const Instruction& instruction : program) {
    if (instruction.opcode() == Opcode::VectorLoad)
      counts.writes += std::uint64_t{decode<VectorLoad>(instruction).count} * machine.columns;
    else if (instruction.opcode() == Opcode::VectorStore)
      counts.reads += std::uint64_t{decode<VectorStore>(instruction).count} * machine.columns;
    else if (instruction.opcode() == Opcode::VectorOp)
      counts += vector_actions(decode<VectorOp>(instruction), machine.columns);
  }
  return counts;
}

}  // namespace triptych::mmu
