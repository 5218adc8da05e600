// The RTL that the driver opens, here the models compiled in.
// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "systolic/sim/rtl_machine.h"
#include "systolic/sim/save_file.h"
#include "systolic/web/cxxrtl_model.h"
#include "systolic/web/models.h"

namespace triptych::mmu {

std::unique_ptr<Machine> open_rtl_machine(const MachineConfig& config) {
  return open_recorded_rtl(config, 0).machine;
}

std::vector<std::string> rtl_machine_names() {
  std::vector<std::string> names;
  for (const CompiledModel& model : compiled_models()) names.emplace_back(model.machine);
  return names;
}

void write_save_file(const RtlModel&, const std::string&, const std::string&, PeKind) {
  throw std::runtime_error("[mmu] there are no files here to write waves to");
}

}  // namespace triptych::mmu
