// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <stdexcept>

#include "systolic/driver/driver.h"
#include "systolic/driver/rtl.h"

namespace triptych::mmu {

std::unique_ptr<Machine> open_rtl(const MachineConfig& machine) {
  throw std::runtime_error(
      fmt::format("[mmu] this build has no RTL of '{}': configure with "
                  "-DTRIPTYCH_ENABLE_RTL=ON (needs Verilator), or use the twin",
                  machine.name));
}

std::vector<std::string> rtl_machines() { return {}; }

}  // namespace triptych::mmu
