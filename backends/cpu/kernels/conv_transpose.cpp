// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/kernels.h"

namespace triptych::cpu {

void add_conv_transpose_kernels(KernelList&) {}

}  // namespace triptych::cpu
