// The simulated systolic array as a backend: it lowers convolutions and matrix products to programs
// of the MMU (docs/reference/mmu.md); other operators are left to the machine's host, the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/device.h"

namespace triptych::systolic {

/// The systolic backend; always available, by the twin.
const Backend& backend();

/// Every kernel of this backend.
KernelTable kernel_table();

}  // namespace triptych::systolic
