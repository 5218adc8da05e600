// When a program does what, as a discrete-event simulation of "Time" in docs/reference/mmu.md. It
// works per instruction and per DRAM request, never per cycle, and knows no values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// Counters, and times if wanted, of a program that has passed check_program. Throws
/// std::runtime_error "token" when a token counter would overflow, "timeout" when units wait for
/// each other for ever.
RunReport simulate_timing(const Program& program, const MachineConfig& machine, bool record_times);

}  // namespace triptych::mmu
