// SPDX-License-Identifier: Apache-2.0
#include "core/ops/unary.h"

#include "backends/cuda/kernels/map.cuh"
#include "core/ops/visit_kind.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

using scalar::UnaryParameters;

/// The formulas as types, so that Gelu's second form is one more of them.
template <UnaryKind kKind>
struct UnaryFormula {
  UnaryParameters parameters;

  template <class T>
  __device__ auto operator()(T value) const {
    const auto x = static_cast<scalar::ComputeType<T>>(value);
    if constexpr (kKind == UnaryKind::Not) {
      return !x;
    } else if constexpr (std::is_integral_v<T>) {
      return scalar::integer_unary<kKind>(x, parameters);
    } else {
      return scalar::unary<kKind>(x, parameters);
    }
  }
};

struct GeluTanh {
  template <class T>
  __device__ float operator()(T value) const {
    return scalar::gelu_tanh(static_cast<float>(value));
  }
};

using Launch = MapKernel<1>::Launch;

template <class T, class F>
Launch launch_of_type(const F& f) {
  return launch_of<T, T>({"unary", "unary_fours"}, f);
}

template <class F>
Launch float_launch(DType dtype, const F& f) {
  if (dtype == DType::BF16) return launch_of_type<BFloat16>(f);
  if (dtype == DType::F16) return launch_of_type<Float16>(f);
  return launch_of_type<float>(f);
}

template <UnaryKind kKind>
Launch launch_of_kind(DType dtype, const UnaryParameters& parameters) {
  using enum UnaryKind;
  const UnaryFormula<kKind> f{parameters};
  if constexpr (kKind == Not) return launch_of_type<bool>(f);
  if constexpr (kKind == Neg || kKind == Abs || kKind == Sign || kKind == Relu || kKind == Clip) {
    if (dtype == DType::I8) return launch_of_type<std::int8_t>(f);
    if (dtype == DType::I32) return launch_of_type<std::int32_t>(f);
    if (dtype == DType::I64) return launch_of_type<std::int64_t>(f);
  }
  if constexpr (kKind != Not) return float_launch(dtype, f);
}

Launch launch_of_op(const Unary& op, DType dtype) {
  if (op.kind == UnaryKind::Gelu && op.approximate == "tanh")
    return float_launch(dtype, GeluTanh());
  return visit_kind<UnaryKind::Not>(op.kind, [&](auto one) {
    return launch_of_kind<one()>(dtype, {op.alpha, op.min, op.max});
  });
}

class UnaryKernel : public MapKernel<1> {
 public:
  UnaryKernel(const KernelQuery& query, Device&)
      : MapKernel(query, launch_of_op(query.as<Unary>(), query.inputs[0].spec.dtype)) {}
};

}  // namespace

void add_unary_kernels(KernelList& list) {
  for (const auto kind : all_unary_kinds()) {
    // Unary's names are literals: the entry's view outlives this object.
    list.push_back(kernel_entry<UnaryKernel>(Unary(kind).name(), "elementwise"));
  }
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
