// SPDX-License-Identifier: Apache-2.0
#include "core/ops/unary.h"

#include "backends/cuda/kernels/elementwise.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

using scalar::UnaryParameters;

/// The formulas as types, so that Gelu's second form is one more of them.
template <UnaryKind kKind>
struct Formula {
  template <class T>
  static __device__ T apply(T x, const UnaryParameters& parameters) {
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
  static __device__ float apply(float x, const UnaryParameters&) { return scalar::gelu_tanh(x); }
};

/// y[i] = f(x[i]): one element per thread.
template <class F, class T>
__global__ void unary_kernel(Global<const T> x, Global<T> y, ElementOffsets<2> offsets,
                             UnaryParameters parameters) {
  for (auto i = global_thread(); i < offsets.elements; i += all_threads()) {
    std::int64_t at[2];
    offsets.at(i, at);
    using Compute = scalar::ComputeType<T>;
    const T value = x[at[1]];
    y[at[0]] = static_cast<T>(F::apply(static_cast<Compute>(value), parameters));
  }
}

/// The same where elements lie in fours: four per thread and access.
template <class F>
__global__ void unary_fours_kernel(Global<const float> x, Global<float> y,
                                   const __grid_constant__ ElementOffsets<2> offsets,
                                   UnaryParameters parameters) {
  const std::int64_t count = offsets.elements;
  for (auto i = 4 * global_thread(); i < count; i += 4 * all_threads()) {
    if (i + 4 <= count) {
      std::int64_t at[2];
      offsets.at(i, at);
      const Vector<float, 4> in = x.template load<4>(at[1]);
      Vector<float, 4> out;
      for (int j = 0; j < 4; ++j) out[j] = F::apply(in[j], parameters);
      y.template store<4>(at[0], out);
    } else {  // there is one axis
      for (auto j = i; j < count; ++j) y[j] = F::apply(static_cast<float>(x[j]), parameters);
    }
  }
}

struct UnaryLaunch {
  const KernelArgs& args;
  const ElementOffsets<2>& offsets;
  const UnaryParameters& parameters;
};

template <class F, class T>
void launch_unary(const UnaryLaunch& node) {
  const auto& [args, offsets, parameters] = node;
  if constexpr (std::is_same_v<T, float>) {
    if (offsets.in_fours() && !offsets.single(1) &&
        is_aligned<16>(args.inputs[0], args.outputs[0])) {
      launch(args.stream, "unary_fours", one_dimension((offsets.elements + 3) / 4),
             unary_fours_kernel<F>, Global(args.in<float>(0), offsets.reach(1)),
             Global(args.out<float>(0), offsets.reach(0)), offsets, parameters);
      return;
    }
  }
  launch(args.stream, "unary", one_dimension(offsets.elements), unary_kernel<F, T>,
         Global(args.in<T>(0), offsets.reach(1)), Global(args.out<T>(0), offsets.reach(0)), offsets,
         parameters);
}

using Launcher = void (*)(const UnaryLaunch& node);

template <class F>
Launcher float_launcher(DType dtype) {
  if (dtype == DType::BF16) return &launch_unary<F, BFloat16>;
  if (dtype == DType::F16) return &launch_unary<F, Float16>;
  return &launch_unary<F, float>;
}

template <UnaryKind kKind>
Launcher launcher_of(DType dtype) {
  using enum UnaryKind;
  if constexpr (kKind == Not) return &launch_unary<Formula<Not>, bool>;
  if constexpr (kKind == Neg || kKind == Abs || kKind == Sign || kKind == Relu || kKind == Clip) {
    if (dtype == DType::I8) return &launch_unary<Formula<kKind>, std::int8_t>;
    if (dtype == DType::I32) return &launch_unary<Formula<kKind>, std::int32_t>;
    if (dtype == DType::I64) return &launch_unary<Formula<kKind>, std::int64_t>;
  }
  if constexpr (kKind != Not) return float_launcher<Formula<kKind>>(dtype);
}

template <int... kKinds>
Launcher launcher_of(const Unary& op, DType dtype, std::integer_sequence<int, kKinds...>) {
  if (op.kind == UnaryKind::Gelu && op.approximate == "tanh")
    return float_launcher<GeluTanh>(dtype);
  Launcher launcher = nullptr;
  ((static_cast<int>(op.kind) == kKinds
        ? void(launcher = launcher_of<static_cast<UnaryKind>(kKinds)>(dtype))
        : void()),
   ...);
  return launcher;
}

constexpr auto kAllKinds = std::make_integer_sequence<int, static_cast<int>(UnaryKind::Not) + 1>();

class UnaryKernel : public Kernel {
 public:
  UnaryKernel(const KernelQuery& query, Device&)
      : UnaryKernel(query, query.as<Unary>(), query.inputs[0].spec.dtype) {}

  static Verdict accepts(const KernelQuery& query) { return accepts_rank(query); }

  void run(const KernelArgs& args) override { launcher_({args, offsets_, parameters_}); }

 private:
  UnaryKernel(const KernelQuery& query, const Unary& op, DType dtype)
      : offsets_(offsets_of<2>(query)),
        parameters_{op.alpha, op.min, op.max},
        launcher_(launcher_of(op, dtype, kAllKinds)) {}

  ElementOffsets<2> offsets_;
  UnaryParameters parameters_;
  Launcher launcher_;
};

}  // namespace

void add_unary_kernels(KernelList& list) {
  for (const auto kind : all_unary_kinds()) {
    // Unary's names are literals: the entry's view outlives this object.
    list.push_back(kernel_entry<UnaryKernel>(Unary(kind).name(), "elementwise"));
  }
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
