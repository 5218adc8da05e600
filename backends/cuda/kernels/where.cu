// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/map.cuh"
#include "core/runtime/kernel_families.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

struct Choice {
  template <class T>
  __device__ T operator()(std::uint8_t condition, T if_true, T if_false) const {
    return condition != 0 ? if_true : if_false;
  }
};

/// Elements are moved, not computed with.
template <class T>
class WhereKernel : public MapKernel<3> {
 public:
  WhereKernel(const KernelQuery& query, Device&)
      : MapKernel(query, launch_of<T, std::uint8_t, T, T>({"where"}, Choice())) {}

  static Verdict accepts(const KernelQuery& query) {
    if (dtype_size(query.outputs[0].spec.dtype) == sizeof(T)) return accepts_rank(query);
    return Verdict::no("is for elements of another size");
  }
};

}  // namespace

void add_where_kernels(KernelList& list) { add_where_kernels_by_size<WhereKernel>(list); }

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
