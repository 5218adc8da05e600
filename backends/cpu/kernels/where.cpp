// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/runtime/kernel_families.h"

namespace triptych::cpu {
namespace {

/// Elements are moved, not computed with.
template <class T>
class WhereKernel : public Kernel {
 public:
  WhereKernel(const KernelQuery& query, Device&)
      : WhereKernel(query, query.outputs[0].spec.shape) {}

  static Verdict accepts(const KernelQuery& query) {
    if (dtype_size(query.outputs[0].spec.dtype) == sizeof(T)) return Verdict::yes();
    return Verdict::no("is for elements of another size");
  }

  void run(const KernelArgs& args) override {
    const auto condition_stride = loop_.row_stride(1);
    const auto a_stride = loop_.row_stride(2), b_stride = loop_.row_stride(3);
    loop_.run([&](const auto& at, std::int64_t count) {
      const auto* condition = args.in<std::uint8_t>(0) + at[1];
      const auto *a = args.in<T>(1) + at[2], *b = args.in<T>(2) + at[3];
      auto* y = args.out<T>(0) + at[0];
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) {
        const T if_true = a[i * a_stride], if_false = b[i * b_stride];
        y[i] = condition[i * condition_stride] != 0 ? if_true : if_false;
      }
    });
  }

 private:
  WhereKernel(const KernelQuery& query, const Shape& y)
      : loop_(y, {operand_strides(query.outputs[0], y), operand_strides(query.inputs[0], y),
                  operand_strides(query.inputs[1], y), operand_strides(query.inputs[2], y)}) {}

  ElementwiseLoop<4> loop_;
};

}  // namespace

void add_where_kernels(KernelList& list) { add_where_kernels_by_size<WhereKernel>(list); }

}  // namespace triptych::cpu
