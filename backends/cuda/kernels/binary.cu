// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"

#include "backends/cuda/kernels/elementwise.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

using enum BinaryKind;

/// Comparisons give bool. Everything else has the type of its operands.
template <BinaryKind kKind, class T>
using ResultType = std::conditional_t<scalar::is_comparison(kKind), bool, T>;

/// y[i] = f(a[i], b[i]): one element per thread.
template <BinaryKind kKind, class T>
__global__ void binary_kernel(Global<const T> a, Global<const T> b, Global<ResultType<kKind, T>> y,
                              ElementOffsets<3> offsets) {
  using Compute = scalar::ComputeType<T>;
  for (auto i = global_thread(); i < offsets.elements; i += all_threads()) {
    std::int64_t at[3];
    offsets.at(i, at);
    const T left = a[at[1]], right = b[at[2]];
    y[at[0]] = static_cast<ResultType<kKind, T>>(
        scalar::apply<kKind>(static_cast<Compute>(left), static_cast<Compute>(right)));
  }
}

/// The same where elements lie in fours: four per thread and access.
template <BinaryKind kKind>
__global__ void binary_fours_kernel(Global<const float> a, Global<const float> b, Global<float> y,
                                    const __grid_constant__ ElementOffsets<3> offsets) {
  const std::int64_t count = offsets.elements;
  for (auto i = 4 * global_thread(); i < count; i += 4 * all_threads()) {
    if (i + 4 <= count) {
      std::int64_t at[3];
      offsets.at(i, at);
      const Vector<float, 4> left = a.template load<4>(at[1]), right = b.template load<4>(at[2]);
      Vector<float, 4> out;
      for (int j = 0; j < 4; ++j) out[j] = scalar::apply<kKind>(left[j], right[j]);
      y.template store<4>(at[0], out);
    } else {  // there is one axis
      for (auto j = i; j < count; ++j) {
        const float left = a[j], right = b[j];
        y[j] = scalar::apply<kKind>(left, right);
      }
    }
  }
}

using Launcher = void (*)(const KernelArgs& args, const ElementOffsets<3>& offsets);

template <BinaryKind kKind, class T>
void launch_binary(const KernelArgs& args, const ElementOffsets<3>& offsets) {
  if constexpr (std::is_same_v<T, float> && !scalar::is_comparison(kKind)) {
    if (offsets.in_fours() && !offsets.single(1) && !offsets.single(2) &&
        is_aligned<16>(args.inputs[0], args.inputs[1], args.outputs[0])) {
      launch(args.stream, "binary_fours", one_dimension((offsets.elements + 3) / 4),
             binary_fours_kernel<kKind>, Global(args.in<float>(0), offsets.reach(1)),
             Global(args.in<float>(1), offsets.reach(2)),
             Global(args.out<float>(0), offsets.reach(0)), offsets);
      return;
    }
  }
  launch(args.stream, "binary", one_dimension(offsets.elements), binary_kernel<kKind, T>,
         Global(args.in<T>(0), offsets.reach(1)), Global(args.in<T>(1), offsets.reach(2)),
         Global(args.out<ResultType<kKind, T>>(0), offsets.reach(0)), offsets);
}

template <BinaryKind kKind>
Launcher launcher_of(DType dtype) {
  if constexpr (scalar::is_logic(kKind)) {
    return &launch_binary<kKind, bool>;
  } else if constexpr (kKind >= ReluGradient) {
    return &launch_binary<kKind, float>;
  } else {
    if (dtype == DType::BF16) return &launch_binary<kKind, BFloat16>;
    if (dtype == DType::F16) return &launch_binary<kKind, Float16>;
    if (dtype == DType::I32) return &launch_binary<kKind, std::int32_t>;
    if (dtype == DType::I64) return &launch_binary<kKind, std::int64_t>;
    return &launch_binary<kKind, float>;
  }
}

template <int... kKinds>
Launcher launcher_of(BinaryKind kind, DType dtype, std::integer_sequence<int, kKinds...>) {
  Launcher launcher = nullptr;
  ((static_cast<int>(kind) == kKinds
        ? void(launcher = launcher_of<static_cast<BinaryKind>(kKinds)>(dtype))
        : void()),
   ...);
  return launcher;
}

constexpr auto kAllKinds = std::make_integer_sequence<int, static_cast<int>(TanhGradient) + 1>();

class BinaryKernel : public Kernel {
 public:
  BinaryKernel(const KernelQuery& query, Device&)
      : offsets_(offsets_of<3>(query)),
        launcher_(launcher_of(query.as<Binary>().kind, query.inputs[0].spec.dtype, kAllKinds)) {}

  static Verdict accepts(const KernelQuery& query) { return accepts_rank(query); }

  void run(const KernelArgs& args) override { launcher_(args, offsets_); }

 private:
  ElementOffsets<3> offsets_;
  Launcher launcher_;
};

}  // namespace

void add_binary_kernels(KernelList& list) {
  for (const auto kind : all_binary_kinds()) {
    // Binary's names are literals: the entry's view outlives this object.
    list.push_back(kernel_entry<BinaryKernel>(Binary(kind).name(), "elementwise"));
  }
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
