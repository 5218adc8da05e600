// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/driver.h"
#include "systolic/driver/rtl.h"
#include "systolic/sim/rtl_machine.h"

namespace triptych::mmu {

std::unique_ptr<Machine> open_rtl(const MachineConfig& machine) {
  return open_rtl_machine(machine);
}

std::vector<std::string> rtl_machines() { return rtl_machine_names(); }

}  // namespace triptych::mmu
