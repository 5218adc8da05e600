// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/machines.h"

#include <fmt/format.h>

namespace triptych::mmu {

bool is_target_clock(const MachineConfig& machine) { return machine.clock_closed_in.empty(); }

std::string clock_text(const MachineConfig& machine) {
  return is_target_clock(machine)
             ? fmt::format("{} MHz (target)", machine.clock_mhz)
             : fmt::format("{} MHz (closes in {})", machine.clock_mhz, machine.clock_closed_in);
}

std::string target_clock_note(const MachineConfig& machine) {
  if (!is_target_clock(machine)) return {};
  return fmt::format(
      "times of {} rest on a target clock of {} MHz: no timing analysis closes it "
      "(docs/results/timing.md)",
      machine.name, machine.clock_mhz);
}

}  // namespace triptych::mmu
