// The array configuration that a run simulates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "experiments/training/device_set.h"
#include "systolic/isa/machine.h"

namespace triptych::machines {

/// By its name or file, else the backend's default. Throws InvalidArgument for one that there is
/// not.
mmu::MachineConfig array_of(const training::ExecutionConfig& config);

/// mmu::target_clock_note of the simulated array. Empty for other backends.
std::string clock_note(const training::ExecutionConfig& config);

}  // namespace triptych::machines
