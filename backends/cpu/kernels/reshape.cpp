// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strided_copy.h"
#include "core/runtime/kernel_families.h"

namespace triptych::cpu {

void add_reshape_kernels(KernelList& list) { add_copy_kernels<CopyKernel>(list); }

}  // namespace triptych::cpu
