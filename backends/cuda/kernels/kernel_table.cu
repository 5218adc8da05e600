// The kernel tables of one build of the kernels.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernel_list.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

KernelList list_for(int capability) {
  KernelList list(capability);
  add_all_kernels(list);
  return list;
}

}  // namespace

KernelTable kernel_table(int capability) {
  static const KernelList old = list_for(75), recent = list_for(80), hopper = list_for(90);
  return (capability == 90 ? hopper : capability >= 80 ? recent : old).table();
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
