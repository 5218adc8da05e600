// SPDX-License-Identifier: Apache-2.0
#include "core/ops/resize.h"

#include "backends/cpu/kernels/axis_maps.h"
#include "backends/cpu/kernels/kernels.h"

namespace triptych::cpu {
namespace {

class NearestResize : public IndexCopyKernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.as<Resize>().mode != "nearest") return Verdict::no("only mode nearest");
    return IndexCopyKernel::accepts(query);
  }

  NearestResize(const KernelQuery& query, Device&)
      : IndexCopyKernel(query, nearest_sources(query.as<Resize>(), query.inputs[0].spec.shape)) {}
};

class LinearResize : public TapSumKernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.as<Resize>().mode == "nearest") return Verdict::no("not mode nearest");
    return TapSumKernel::accepts(query);
  }

  LinearResize(const KernelQuery& query, Device&)
      : TapSumKernel(query, resize_taps(query.as<Resize>(), query.inputs[0].spec.shape)) {}
};

}  // namespace

void add_resize_kernels(KernelList& list) {
  list.push_back(kernel_entry<NearestResize>("Resize", "nearest"));
  list.push_back(kernel_entry<LinearResize>("Resize", "linear"));
  list.push_back(kernel_entry<TapGradientKernel<ResizeGradient>>("ResizeGradient", "tap_sum"));
}

}  // namespace triptych::cpu
