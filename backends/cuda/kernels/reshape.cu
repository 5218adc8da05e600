// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/strided_copy.cuh"
#include "core/runtime/kernel_families.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

void add_reshape_kernels(KernelList& list) { add_copy_kernels<CopyKernel>(list); }

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
