// SPDX-License-Identifier: Apache-2.0
#include "core/ops/resize.h"

#include "backends/cuda/kernels/axis_maps.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

class NearestResize : public IndexCopyKernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.as<Resize>().mode != "nearest") return Verdict::no("only mode nearest");
    return IndexCopyKernel::accepts(query);
  }

  NearestResize(const KernelQuery& query, Device& device)
      : IndexCopyKernel(query, device,
                        nearest_sources(query.as<Resize>(), query.inputs[0].spec.shape)) {}
};

class LinearResize : public TapSumKernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.as<Resize>().mode == "nearest") return Verdict::no("not mode nearest");
    return TapSumKernel::accepts(query);
  }

  LinearResize(const KernelQuery& query, Device& device)
      : TapSumKernel(query, device, resize_taps(query.as<Resize>(), query.inputs[0].spec.shape)) {}
};

}  // namespace

void add_resize_kernels(KernelList& list) {
  list.push_back(kernel_entry<NearestResize>(Resize::kName, "nearest"));
  list.push_back(kernel_entry<LinearResize>(Resize::kName, "linear"));
  list.push_back(kernel_entry<TapGradientKernel<ResizeGradient>>(ResizeGradient::kName, "tap_sum"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
