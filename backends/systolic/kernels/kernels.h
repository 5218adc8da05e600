// Where every operator of this backend meets the kernel tables: each appends its entries.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/kernel.h"

namespace triptych::systolic {

/// Entries by what the array multiplies.
struct KernelLists {
  std::vector<KernelEntry> bf16, int8;
};

void add_conv_kernels(KernelLists& list);
void add_conv_transpose_kernels(KernelLists& list);
void add_conv_weight_gradient_kernels(KernelLists& list);
void add_matmul_kernels(KernelLists& list);

}  // namespace triptych::systolic
