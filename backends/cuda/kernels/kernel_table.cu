// The kernel table of one build of the kernels: one line per file.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/tensor_core_kernels.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

void add_unary_kernels(KernelList& list);
void add_binary_kernels(KernelList& list);
void add_fused_elementwise_kernels(KernelList& list);
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
void add_attention_kernels(KernelList& list);
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

namespace {

/// The entry for a GPU that cannot run it: it says why.
KernelEntry without_bf16(KernelEntry entry) {
  entry.accepts = [](const KernelQuery&) {
    return Verdict::no("needs compute capability 8.0: older tensor cores have no bfloat16");
  };
  return entry;
}

KernelEntry without_wgmma(KernelEntry entry) {
  entry.accepts = [](const KernelQuery&) {
    return Verdict::no(
        kBuiltForHopper ? "needs compute capability 9.0: no other has wgmma"
                        : "this build has no code for 9.0a; TRIPTYCH_CUDA_ARCHITECTURES=90a-real "
                          "adds it");
  };
  return entry;
}

void add_tensor_core_kernels(KernelList& list, int capability) {
  for (const auto& entry : {hopper_matmul(), hopper_conv(), hopper_conv_transpose()}) {
    list.push_back(kBuiltForHopper && capability == 90 ? entry : without_wgmma(entry));
  }
  for (const auto& entry : {tensor_core_matmul(), tensor_core_conv(), tensor_core_conv_transpose(),
                            tensor_core_weight_gradient(), tensor_core_attention()}) {
    list.push_back(capability >= 80 ? entry : without_bf16(entry));
  }
}

KernelList list_for(int capability) {
  KernelList entries;
  add_tensor_core_kernels(entries, capability);
  add_unary_kernels(entries);
  add_binary_kernels(entries);
  add_fused_elementwise_kernels(entries);
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
  add_attention_kernels(entries);
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
}

}  // namespace

KernelTable kernel_table(int capability) {
  static const KernelList old = list_for(75), recent = list_for(80), hopper = list_for(90);
  return capability == 90 ? hopper : capability >= 80 ? recent : old;
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
