// Where every kernel file of this backend meets the kernel tables, of which each build of the
// kernels (platform.h) has its own: each file appends its entries, those of one operator best
// first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/kernel.h"

namespace triptych::cuda {

using KernelList = std::vector<KernelEntry>;

/// The kernels for GPUs of this compute capability, 86 for 8.6; those that need more say so.
namespace gpu {
KernelTable kernel_table(int capability);
}
namespace emulated {
KernelTable kernel_table(int capability);
}
namespace counted {
KernelTable kernel_table(int capability);
/// Kernels with a planted mistake each (lessons/).
KernelTable lesson_table();
}  // namespace counted

}  // namespace triptych::cuda
