// The MMU's RTL, compiled by Verilator, behind the interface of every simulator. No type of
// Verilator leaves this folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// A machine whose array, memories and queues are those of one whose RTL is built in; its name,
/// clock, weight scheme and DRAM are free. Throws std::runtime_error, naming the machines there
/// are, when none fits.
std::unique_ptr<Machine> open_rtl_machine(const MachineConfig& config);
/// The shipped machines whose RTL is built in.
std::vector<std::string> rtl_machine_names();

}  // namespace triptych::mmu
