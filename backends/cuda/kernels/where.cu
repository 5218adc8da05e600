// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/elementwise.cuh"
#include "core/runtime/kernel_families.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// y[i] = condition[i] ? a[i] : b[i], one element per thread.
template <class T>
__global__ void where_kernel(Global<const std::uint8_t> condition, Global<const T> a,
                             Global<const T> b, Global<T> y, ElementOffsets<4> offsets) {
  for (auto i = global_thread(); i < offsets.elements; i += all_threads()) {
    std::int64_t at[4];
    offsets.at(i, at);
    const std::uint8_t chosen = condition[at[1]];
    const T if_true = a[at[2]], if_false = b[at[3]];
    y[at[0]] = chosen != 0 ? if_true : if_false;
  }
}

/// Elements are moved, not computed with.
template <class T>
class WhereKernel : public Kernel {
 public:
  WhereKernel(const KernelQuery& query, Device&) : offsets_(offsets_of<4>(query)) {}

  static Verdict accepts(const KernelQuery& query) {
    if (dtype_size(query.outputs[0].spec.dtype) == sizeof(T)) return accepts_rank(query);
    return Verdict::no("is for elements of another size");
  }

  void run(const KernelArgs& args) override {
    launch(args.stream, "where", one_dimension(offsets_.elements), where_kernel<T>,
           Global(args.in<std::uint8_t>(0), offsets_.reach(1)),
           Global(args.in<T>(1), offsets_.reach(2)), Global(args.in<T>(2), offsets_.reach(3)),
           Global(args.out<T>(0), offsets_.reach(0)), offsets_);
  }

 private:
  ElementOffsets<4> offsets_;
};

}  // namespace

void add_where_kernels(KernelList& list) { add_where_kernels_by_size<WhereKernel>(list); }

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
