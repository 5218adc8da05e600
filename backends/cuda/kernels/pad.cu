// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pad.h"

#include <cstring>

#include "backends/cuda/kernels/axis_maps.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// Every element of y copies one of x, or takes the constant: one pass over y in every mode.
class PadKernel : public IndexCopyKernel {
 public:
  PadKernel(const KernelQuery& query, Device& device)
      : IndexCopyKernel(query, device, pad_sources(query.as<Pad>(), query.inputs[0].spec.shape),
                        bits_of_constant(query)) {}

 private:
  static std::uint64_t bits_of_constant(const KernelQuery& query) {
    const auto value = query.as<Pad>().value_as(query.inputs[0].spec.dtype);
    std::uint64_t bits = 0;
    std::memcpy(&bits, value.bytes().data(), value.bytes().size());
    return bits;
  }
};

}  // namespace

void add_pad_kernels(KernelList& list) {
  list.push_back(kernel_entry<PadKernel>(Pad::kName, "index_copy"));
  list.push_back(kernel_entry<TapGradientKernel<PadGradient>>(PadGradient::kName, "tap_sum"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
