// Definitions that every kernel file of this backend, NAME.cu, has for the kernel tables. Each
// build of the kernels (platform.h) has its own: a function `void add_NAME_kernels(KernelList&
// list)`, which appends its entries, with those of one operator in order of preference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/kernel.h"

namespace triptych::cuda {

/// The kernels for GPUs of one compute capability, 86 for 8.6.
class KernelList {
 public:
  explicit KernelList(int capability) : capability_(capability) {}
  int capability() const { return capability_; }
  void push_back(const KernelEntry& entry) { entries_.push_back(entry); }
  KernelTable table() const { return entries_; }

 private:
  int capability_;
  std::vector<KernelEntry> entries_;
};

/// The kernels for GPUs of this compute capability. Those that need more say so.
namespace gpu {
KernelTable kernel_table(int capability);
}
namespace emulated {
KernelTable kernel_table(int capability);
}
namespace counted {
KernelTable kernel_table(int capability);
/// Kernels with a planted mistake each (lessons/).
KernelTable lesson_table();
}  // namespace counted

}  // namespace triptych::cuda
