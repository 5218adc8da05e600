// The simulated systolic array as a backend: it lowers convolutions and matrix products to programs
// of the MMU (docs/reference/mmu.md), and other operators where it has a vector unit. The rest is
// left to the machine's host, the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/device.h"
#include "systolic/driver/driver.h"

namespace triptych::systolic {

/// The backend of the simulated arrays, always available.
const Backend& backend();

/// Every kernel of this backend on a machine. Those for the other kind of PE are there to say which
/// machine to ask for.
KernelTable kernel_table(const mmu::MachineConfig& machine);

}  // namespace triptych::systolic
