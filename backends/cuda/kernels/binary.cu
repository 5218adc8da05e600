// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"

#include "backends/cuda/kernels/map.cuh"
#include "core/ops/visit_kind.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

using enum BinaryKind;

/// Comparisons give bool. Everything else has the type of its operands.
template <BinaryKind kKind, class T>
using ResultType = std::conditional_t<scalar::is_comparison(kKind), bool, T>;

template <BinaryKind kKind>
struct BinaryFormula {
  template <class T>
  __device__ auto operator()(T a, T b) const {
    using Compute = scalar::ComputeType<T>;
    return scalar::apply<kKind>(static_cast<Compute>(a), static_cast<Compute>(b));
  }
};

using Launch = MapKernel<2>::Launch;

template <BinaryKind kKind, class T>
Launch launch_of_type() {
  return launch_of<ResultType<kKind, T>, T, T>({"binary", "binary_fours"}, BinaryFormula<kKind>());
}

template <BinaryKind kKind>
Launch launch_of_kind(DType dtype) {
  if constexpr (scalar::is_logic(kKind)) {
    return launch_of_type<kKind, bool>();
  } else if constexpr (kKind >= ReluGradient) {
    return launch_of_type<kKind, float>();
  } else {
    if (dtype == DType::BF16) return launch_of_type<kKind, BFloat16>();
    if (dtype == DType::F16) return launch_of_type<kKind, Float16>();
    if (dtype == DType::I32) return launch_of_type<kKind, std::int32_t>();
    if (dtype == DType::I64) return launch_of_type<kKind, std::int64_t>();
    return launch_of_type<kKind, float>();
  }
}

Launch launch_of_kind(BinaryKind kind, DType dtype) {
  return visit_kind<TanhGradient>(kind, [&](auto one) { return launch_of_kind<one()>(dtype); });
}

class BinaryKernel : public MapKernel<2> {
 public:
  BinaryKernel(const KernelQuery& query, Device&)
      : MapKernel(query, launch_of_kind(query.as<Binary>().kind, query.inputs[0].spec.dtype)) {}
};

}  // namespace

void add_binary_kernels(KernelList& list) {
  for (const auto kind : all_binary_kinds()) {
    // Binary's names are literals: the entry's view outlives this object.
    list.push_back(kernel_entry<BinaryKernel>(Binary(kind).name(), "elementwise"));
  }
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
