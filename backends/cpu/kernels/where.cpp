// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/node_rows.h"
#include "core/runtime/kernel_families.h"

namespace triptych::cpu {
namespace {

/// Elements are moved, not computed with.
template <class T>
class WhereKernel : public Kernel {
 public:
  WhereKernel(const KernelQuery& query, Device&) : rows_(query) {}

  static Verdict accepts(const KernelQuery& query) {
    if (dtype_size(query.outputs[0].spec.dtype) == sizeof(T)) return Verdict::yes();
    return Verdict::no("is for elements of another size");
  }

  void run(const KernelArgs& args) override {
    rows_.run(args, [](const auto& inputs, std::byte* to, std::int64_t count) {
      const auto [condition, condition_stride] = inputs[0];
      const auto a_stride = inputs[1].stride, b_stride = inputs[2].stride;
      const auto *a = reinterpret_cast<const T*>(inputs[1].x),
                 *b = reinterpret_cast<const T*>(inputs[2].x);
      auto* y = reinterpret_cast<T*>(to);
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) {
        const T if_true = a[i * a_stride], if_false = b[i * b_stride];
        y[i] = condition[i * condition_stride] != std::byte{0} ? if_true : if_false;
      }
    });
  }

 private:
  NodeRows<3> rows_;
};

}  // namespace

void add_where_kernels(KernelList& list) { add_where_kernels_by_size<WhereKernel>(list); }

}  // namespace triptych::cpu
