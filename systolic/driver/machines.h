// The default machine, and the basis of a machine's clock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "systolic/isa/machine.h"

namespace triptych::mmu {

inline constexpr std::string_view kDefaultMachine = "mmu16";
/// The machine for comparisons with other hardware: its clock closes.
inline constexpr std::string_view kComparedMachine = "mmu16-45nm";

/// True for a clock that no timing analysis closes (docs/results/timing.md).
bool is_target_clock(const MachineConfig& machine);
/// "700 MHz (target)" or "500 MHz (closes in nangate45_typ)".
std::string clock_text(const MachineConfig& machine);
/// A note for readers of times of a machine with a target clock. Empty for another one.
std::string target_clock_note(const MachineConfig& machine);

}  // namespace triptych::mmu
