// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cast.h"

#include "backends/cuda/kernels/map.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

template <class To>
struct Conversion {
  template <class From>
  __device__ To operator()(From value) const {
    return scalar::convert<From, To>(value);
  }
};

MapKernel<1>::Launch launch_of_types(DType from, DType to) {
  return visit_dtype(from, [&](auto x) {
    return visit_dtype(to, [](auto y) {
      return launch_of<decltype(y), decltype(x)>({"cast"}, Conversion<decltype(y)>());
    });
  });
}

class CastKernel : public MapKernel<1> {
 public:
  CastKernel(const KernelQuery& query, Device&)
      : MapKernel(query, launch_of_types(query.inputs[0].spec.dtype, query.outputs[0].spec.dtype)) {
  }
};

}  // namespace

void add_cast_kernels(KernelList& list) {
  list.push_back(kernel_entry<CastKernel>("Cast", "elementwise"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
