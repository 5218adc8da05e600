// Where every kernel file of this backend meets the kernel tables, of which each build of the
// kernels (platform.h) has its own: each file appends its entries, those of one operator best
// first. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/kernel.h"

namespace triptych::cuda {

using KernelList = std::vector<KernelEntry>;

namespace gpu {
KernelTable kernel_table();
}
namespace emulated {
KernelTable kernel_table();
}
namespace counted {
KernelTable kernel_table();
}

}  // namespace triptych::cuda
