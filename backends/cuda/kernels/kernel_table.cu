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
void add_reduce_kernels(KernelList& list);
void add_batch_normalization_kernels(KernelList& list);
void add_pool_kernels(KernelList& list);
void add_loss_kernels(KernelList& list);
void add_optimizer_kernels(KernelList& list);
void add_softmax_kernels(KernelList& list);
void add_reshape_kernels(KernelList& list);
void add_transpose_kernels(KernelList& list);
void add_concat_kernels(KernelList& list);
void add_slice_kernels(KernelList& list);
void add_pad_kernels(KernelList& list);
void add_expand_kernels(KernelList& list);
void add_gather_kernels(KernelList& list);
void add_resize_kernels(KernelList& list);
void add_dropout_kernels(KernelList& list);
void add_quantize_kernels(KernelList& list);

KernelTable kernel_table() {
  static const KernelList list = [] {
    KernelList entries;
    add_unary_kernels(entries);
    add_binary_kernels(entries);
    add_where_kernels(entries);
    add_cast_kernels(entries);
    add_matmul_kernels(entries);
    add_conv_kernels(entries);
    add_reduce_kernels(entries);
    add_batch_normalization_kernels(entries);
    add_pool_kernels(entries);
    add_loss_kernels(entries);
    add_optimizer_kernels(entries);
    add_softmax_kernels(entries);
    add_reshape_kernels(entries);
    add_transpose_kernels(entries);
    add_concat_kernels(entries);
    add_slice_kernels(entries);
    add_pad_kernels(entries);
    add_expand_kernels(entries);
    add_gather_kernels(entries);
    add_resize_kernels(entries);
    add_dropout_kernels(entries);
    add_quantize_kernels(entries);
    return entries;
  }();
  return list;
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
