// SPDX-License-Identifier: Apache-2.0
#include "core/ops/slice.h"

#include "backends/cuda/kernels/axis_maps.cuh"
#include "backends/cuda/kernels/strided_copy.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// For each axis of dx and each index along it the index of dy that Slice read there, or -1.
std::vector<Dims> slice_gradient_sources(const KernelQuery& query) {
  const Shape& dx = query.outputs[0].spec.shape;
  const auto geometry = SliceGeometry::of(query.as<SliceGradient>().forward(), dx);
  std::vector<Dims> sources;
  for (std::int64_t axis = 0; axis < dx.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    auto& axis_sources = sources.emplace_back(static_cast<std::size_t>(dx[axis]), -1);
    for (std::int64_t i = 0; i < geometry.output[axis]; ++i) {
      axis_sources[static_cast<std::size_t>(geometry.starts[a] + i * geometry.steps[a])] = i;
    }
  }
  return sources;
}

/// dy where Slice read, zeros elsewhere.
class SliceGradientKernel : public IndexCopyKernel {
 public:
  SliceGradientKernel(const KernelQuery& query, Device& device)
      : IndexCopyKernel(query, device, slice_gradient_sources(query)) {}
};

}  // namespace

void add_slice_kernels(KernelList& list) {
  list.push_back(kernel_entry<ViewKernel<Slice>>(Slice::kName, "strided_copy"));
  list.push_back(kernel_entry<SliceGradientKernel>(SliceGradient::kName, "index_copy"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
