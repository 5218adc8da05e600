// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/array_machine.h"

#include <stdexcept>

#include "core/base/error.h"
#include "systolic/driver/machines.h"

namespace triptych::machines {

mmu::MachineConfig array_of(const training::ExecutionConfig& config) {
  try {
    return mmu::find_machine(config.machine.empty() ? mmu::kDefaultMachine
                                                    : std::string_view(config.machine));
  } catch (const std::invalid_argument& error) {
    throw InvalidArgument(error.what());
  }
}

std::string clock_note(const training::ExecutionConfig& config) {
  return config.backend == "systolic" ? mmu::target_clock_note(array_of(config)) : std::string();
}

}  // namespace triptych::machines
