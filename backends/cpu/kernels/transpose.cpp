// SPDX-License-Identifier: Apache-2.0
#include "core/ops/transpose.h"

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strided_copy.h"

namespace triptych::cpu {

void add_transpose_kernels(KernelList& list) {
  list.push_back(kernel_entry<ViewKernel<Transpose>>("Transpose", "strided_copy"));
}

}  // namespace triptych::cpu
