// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cast.h"

#include "backends/cuda/kernels/elementwise.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// y[i] = x[i] converted, one element per thread.
template <class From, class To>
__global__ void cast_kernel(Global<const From> x, Global<To> y, ElementOffsets<2> offsets) {
  for (auto i = global_thread(); i < offsets.elements; i += all_threads()) {
    std::int64_t at[2];
    offsets.at(i, at);
    const From value = x[at[1]];
    y[at[0]] = scalar::convert<From, To>(value);
  }
}

using Launcher = void (*)(const KernelArgs& args, const ElementOffsets<2>& offsets);

template <class From, class To>
void launch_cast(const KernelArgs& args, const ElementOffsets<2>& offsets) {
  launch(args.stream, "cast", one_dimension(offsets.elements), cast_kernel<From, To>,
         Global(args.in<From>(0), offsets.reach(1)), Global(args.out<To>(0), offsets.reach(0)),
         offsets);
}

Launcher launcher_of(DType from, DType to) {
  return visit_dtype(from, [&](auto x) {
    return visit_dtype(to,
                       [](auto y) -> Launcher { return &launch_cast<decltype(x), decltype(y)>; });
  });
}

class CastKernel : public Kernel {
 public:
  CastKernel(const KernelQuery& query, Device&)
      : offsets_(offsets_of<2>(query)),
        launcher_(launcher_of(query.inputs[0].spec.dtype, query.outputs[0].spec.dtype)) {}

  static Verdict accepts(const KernelQuery& query) { return accepts_rank(query); }

  void run(const KernelArgs& args) override { launcher_(args, offsets_); }

 private:
  ElementOffsets<2> offsets_;
  Launcher launcher_;
};

}  // namespace

void add_cast_kernels(KernelList& list) {
  list.push_back(kernel_entry<CastKernel>("Cast", "elementwise"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
