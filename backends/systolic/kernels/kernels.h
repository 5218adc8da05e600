// Where every operator of this backend meets the kernel table: each appends its entries.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/kernel.h"

namespace triptych::systolic {

using KernelList = std::vector<KernelEntry>;

void add_conv_kernels(KernelList& list);
void add_conv_transpose_kernels(KernelList& list);
void add_conv_weight_gradient_kernels(KernelList& list);
void add_matmul_kernels(KernelList& list);

}  // namespace triptych::systolic
