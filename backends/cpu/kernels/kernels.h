// Definitions that every kernel file of this backend, NAME.cpp, has for the kernel table: a
// function `void add_NAME_kernels(KernelList& list)`, which appends its entries, those of one
// operator best first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/kernel.h"

namespace triptych::cpu {

using KernelList = std::vector<KernelEntry>;

}  // namespace triptych::cpu
