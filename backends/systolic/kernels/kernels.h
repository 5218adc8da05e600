// Definitions that every kernel file of this backend, NAME.cpp, has for the kernel tables: a
// function `void add_NAME_kernels(KernelLists& list)`, which appends its entries.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/kernel.h"

namespace triptych::systolic {

/// Entries by the type of the array's products, and those of the vector unit.
struct KernelLists {
  std::vector<KernelEntry> bf16, int8, vector;
};

}  // namespace triptych::systolic
