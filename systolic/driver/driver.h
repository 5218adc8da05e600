// The programming interface of the MMU: check a program, open a machine as RTL, as twin, or as
// both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "systolic/driver/simulation.h"
#include "systolic/isa/simulator.h"
#include "systolic/isa/vector_operations.h"

namespace triptych::mmu {

/// Throws std::invalid_argument "instruction 12 (matmul ...): problem" for a program that the
/// machine would refuse, that reads or writes outside a memory, or that cannot be executed one
/// instruction after the other in program order because of its tokens.
void verify(const Program& program, const MachineConfig& machine);

/// The machine's counters, cycles among them, for a program that it accepts. Nothing is computed.
Counters counters_of(const Program& program, const MachineConfig& machine);

/// The bytes of the DRAM that each array of the machine has for itself, if they share it equally.
std::uint64_t dram_part_bytes(const MachineConfig& machine);
/// The counters of `array` when so many arrays of the machine run this program at the same time,
/// each in its part of the DRAM, and the others are idle. The parts begin in different banks, so
/// that arrays in step do not close each other's rows. Nothing is computed. Throws
/// std::invalid_argument for a program that does not fit its part.
Counters counters_among(const Program& program, const MachineConfig& machine, std::uint32_t running,
                        std::uint32_t array);

/// Throws std::runtime_error with the command to type when the RTL of that machine is neither built
/// in nor built (`triptych machine build`, or build_machine of systolic/sim/machine_builder.h).
/// Throws it also for the twin of a machine with the user's own modules, which only its RTL has.
std::unique_ptr<Machine> open_machine(const MachineConfig& machine, Simulation simulation);
/// The machines with built-in RTL.
std::vector<std::string> rtl_machines();

}  // namespace triptych::mmu
