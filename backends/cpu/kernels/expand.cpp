// SPDX-License-Identifier: Apache-2.0
#include "core/ops/expand.h"

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strided_copy.h"

namespace triptych::cpu {

void add_expand_kernels(KernelList& list) {
  list.push_back(kernel_entry<ViewKernel<Expand>>("Expand", "strided_copy"));
}

}  // namespace triptych::cpu
