// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/kernel_list.h"

namespace triptych::cpu {

KernelTable kernel_table() {
  static const KernelList table = [] {
    KernelList list;
    add_all_kernels(list);
    return list;
  }();
  return table;
}

}  // namespace triptych::cpu
