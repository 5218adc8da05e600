// Machines of the models of mmu_axi, and random times of their memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "systolic/driver/driver.h"
#include "systolic/isa/field.h"
#include "tests/systolic/cosim/axi_memory.h"
#include "tests/systolic/cosim/dice.h"
#include "tests/systolic/cosim/generator.h"
#include "tests/systolic/cosim/synchronise.h"

namespace triptych::mmu {

/// 4 x 4 bf16 PEs with a vector unit, bursts of up to 16 beats.
inline MachineConfig axi_machine_4x4() {
  MachineConfig machine = find_machine("mmu4");
  machine.vector_rows = 64;
  return machine;
}
/// 3 x 12 int8 PEs with both dataflows, bursts of up to two beats, few of them outstanding.
inline MachineConfig axi_machine_3x12() {
  MachineConfig machine = find_machine("mmu4");
  machine.rows = 3;
  machine.columns = 12;
  machine.pe = PeKind::Int8;
  machine.dataflows = Dataflows::Both;
  return machine;
}

inline AxiTiming random_timing(const MachineConfig& machine, std::mt19937& random) {
  Dice dice(random);
  return {.stall_percent = dice.among({0U, 10U, 50U, 90U}),
          .latency = dice.among({1U, 5U, 40U}),
          .spread = dice.among({0U, 3U, 30U}),
          .max_beats = machine.rows == 3 ? 2U : 16U};
}

/// Moves everything that the instruction reads or writes in DRAM to the first bytes, if it is
/// legal.
inline void move_to_the_start(Case& test, Instruction& instruction) {
  const Instruction before = instruction;
  for (const Field& field : find_opcode(instruction.opcode())->fields)
    if (field.name == "address" || field.name == "operand")
      set_field(instruction, field, get_field(instruction, field) % 512);
  try {
    verify(synchronise(test.program, test.machine), test.machine);
  } catch (const std::invalid_argument&) {
    instruction = before;
  }
}

/// A random case. In every other one instructions read what earlier ones have just written.
inline Case random_axi_case(const MachineConfig& machine, std::mt19937& random) {
  const bool close = random() % 2 == 0;
  Case test = random_case(vary_machine(machine, random), random);
  test.machine.dram_bytes = kCaseDramBytes;
  if (close)
    for (Instruction& instruction : test.program) move_to_the_start(test, instruction);
  return test;
}

}  // namespace triptych::mmu
