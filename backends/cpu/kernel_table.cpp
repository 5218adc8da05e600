// The kernel table of the CPU: one line per file of kernels.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/kernels/kernels.h"

namespace triptych::cpu {

KernelTable kernel_table() {
  static const KernelList list = [] {
    KernelList entries;
    add_matmul_kernels(entries);
    add_matmul_ladder(entries);
    // Before the other kernels of their operators.
    add_conv_winograd_kernels(entries);
    add_conv_weight_gradient_winograd_kernels(entries);
    add_conv_weight_gradient_direct_kernels(entries);
    add_conv_kernels(entries);
    add_conv_transpose_kernels(entries);
    add_conv_weight_gradient_kernels(entries);
    add_unary_kernels(entries);
    add_binary_kernels(entries);
    add_where_kernels(entries);
    add_cast_kernels(entries);
    add_quantize_kernels(entries);
    add_reduce_kernels(entries);
    add_softmax_kernels(entries);
    add_batch_normalization_kernels(entries);
    add_pool_kernels(entries);
    add_reshape_kernels(entries);
    add_transpose_kernels(entries);
    add_concat_kernels(entries);
    add_slice_kernels(entries);
    add_pad_kernels(entries);
    add_expand_kernels(entries);
    add_gather_kernels(entries);
    add_resize_kernels(entries);
    add_dropout_kernels(entries);
    add_loss_kernels(entries);
    add_optimizer_kernels(entries);
    return entries;
  }();
  return list;
}

}  // namespace triptych::cpu
