// Where every kernel file of this backend meets the kernel table: each appends its entries, those
// of one operator best first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/kernel.h"

namespace triptych::cpu {

using KernelList = std::vector<KernelEntry>;

void add_matmul_kernels(KernelList& list);
void add_matmul_ladder(KernelList& list);
void add_conv_kernels(KernelList& list);
void add_conv_transpose_kernels(KernelList& list);
void add_conv_weight_gradient_kernels(KernelList& list);
void add_conv_weight_gradient_direct_kernels(KernelList& list);
void add_conv_weight_gradient_winograd_kernels(KernelList& list);
void add_conv_winograd_kernels(KernelList& list);
void add_unary_kernels(KernelList& list);
void add_binary_kernels(KernelList& list);
void add_where_kernels(KernelList& list);
void add_cast_kernels(KernelList& list);
void add_quantize_kernels(KernelList& list);
void add_reduce_kernels(KernelList& list);
void add_softmax_kernels(KernelList& list);
void add_batch_normalization_kernels(KernelList& list);
void add_pool_kernels(KernelList& list);
void add_reshape_kernels(KernelList& list);
void add_transpose_kernels(KernelList& list);
void add_concat_kernels(KernelList& list);
void add_slice_kernels(KernelList& list);
void add_pad_kernels(KernelList& list);
void add_expand_kernels(KernelList& list);
void add_gather_kernels(KernelList& list);
void add_resize_kernels(KernelList& list);
void add_dropout_kernels(KernelList& list);
void add_loss_kernels(KernelList& list);
void add_optimizer_kernels(KernelList& list);

}  // namespace triptych::cpu
