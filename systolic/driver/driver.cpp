// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/driver.h"

#include <fmt/core.h>

#include <stdexcept>

#include "systolic/driver/pair.h"
#include "systolic/isa/check.h"
#include "systolic/sim/rtl_machine.h"
#include "systolic/twin/twin.h"

namespace triptych::mmu {

void verify(const Program& program, const MachineConfig& machine) {
  check_program(program, machine);
}

Counters counters_of(const Program& program, const MachineConfig& machine) {
  return estimate(program, machine).counters;
}

std::unique_ptr<Machine> open_machine(const MachineConfig& machine, Simulation simulation) {
  validate(machine);
  if (simulation == Simulation::Twin) {
    if (!machine.rtl.empty())
      throw std::runtime_error(fmt::format(
          "[mmu] the twin knows nothing of the modules in {}: use the option simulate rtl, or both "
          "to compare them with it",
          machine.rtl));
    return open_twin(machine);
  }
  if (simulation == Simulation::Rtl) return open_rtl_machine(machine);
  return open_pair(open_rtl_machine(machine), open_twin(machine));
}

std::vector<std::string> rtl_machines() { return rtl_machine_names(); }

}  // namespace triptych::mmu
