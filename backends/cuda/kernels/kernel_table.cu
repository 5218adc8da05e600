// The kernel table of one build of the kernels: one line per file.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/platform.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

void add_unary_kernels(KernelList& list);
void add_binary_kernels(KernelList& list);
void add_where_kernels(KernelList& list);
void add_cast_kernels(KernelList& list);
void add_matmul_kernels(KernelList& list);
void add_conv_kernels(KernelList& list);

KernelTable kernel_table() {
  static const KernelList list = [] {
    KernelList entries;
    add_unary_kernels(entries);
    add_binary_kernels(entries);
    add_where_kernels(entries);
    add_cast_kernels(entries);
    add_matmul_kernels(entries);
    add_conv_kernels(entries);
    return entries;
  }();
  return list;
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
