// SPDX-License-Identifier: Apache-2.0
#include "core/ops/expand.h"

#include "backends/cuda/kernels/strided_copy.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

void add_expand_kernels(KernelList& list) {
  list.push_back(kernel_entry<ViewKernel<Expand>>(Expand::kName, "strided_copy"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
