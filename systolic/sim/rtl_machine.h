// The MMU's RTL, compiled by Verilator, behind the interface of every simulator: machines that are
// built in, and those that machine_builder.h has made. No type of Verilator leaves this folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "systolic/isa/simulator.h"
#include "systolic/sim/rtl_model.h"

namespace triptych::mmu {

/// The harness around a model of this machine: clock, program, DRAM, waves.
std::unique_ptr<Machine> make_rtl_machine(std::unique_ptr<RtlModel> model,
                                          const MachineConfig& config);

/// A machine with the array, memories and queues of one with existing RTL. Its name, clock, weight
/// scheme and DRAM are free. Throws std::runtime_error with the command that builds it when there
/// is none, and when the built object is damaged. Nothing is built silently.
std::unique_ptr<Machine> open_rtl_machine(const MachineConfig& config);

enum class RtlState { BuiltIn, Built, NotBuilt };
std::string_view to_string(RtlState state);
/// State of the RTL that open_rtl_machine would find.
RtlState rtl_state(const MachineConfig& config);

/// The shipped machines with built-in RTL.
std::vector<std::string> rtl_machine_names();

}  // namespace triptych::mmu
