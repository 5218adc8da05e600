// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cast.h"

#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kernels.h"

namespace triptych::cpu {
namespace {

template <class From, class To>
void cast_row(const std::byte* x_bytes, std::byte* y_bytes, std::int64_t count) {
  const auto* x = reinterpret_cast<const From*>(x_bytes);
  auto* y = reinterpret_cast<To*>(y_bytes);
  for (std::int64_t i = 0; i < count; ++i) y[i] = scalar::convert<From, To>(x[i]);
}

using CastRow = void (*)(const std::byte* x, std::byte* y, std::int64_t count);

CastRow row_of(DType from, DType to) {
  return visit_dtype(from, [&](auto x) {
    return visit_dtype(to, [](auto y) -> CastRow { return &cast_row<decltype(x), decltype(y)>; });
  });
}

class CastKernel : public Kernel {
 public:
  CastKernel(const KernelQuery& query, Device&)
      : CastKernel(query, query.inputs[0].spec.dtype, query.outputs[0].spec) {}

  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    loop_.run([&](const auto& at, std::int64_t count) {
      row_(args.inputs[0] + at[1] * in_size_, args.outputs[0] + at[0] * out_size_, count);
    });
  }

 private:
  CastKernel(const KernelQuery& query, DType from, const TensorSpec& y)
      : loop_(y.shape, {operand_strides(query.outputs[0], y.shape),
                        operand_strides(query.inputs[0], y.shape)}),
        row_(row_of(from, y.dtype)),
        in_size_(static_cast<std::int64_t>(dtype_size(from))),
        out_size_(static_cast<std::int64_t>(dtype_size(y.dtype))) {}

  ElementwiseLoop<2> loop_;
  CastRow row_;
  std::int64_t in_size_, out_size_;
};

}  // namespace

void add_cast_kernels(KernelList& list) {
  list.push_back(kernel_entry<CastKernel>("Cast", "elementwise"));
}

}  // namespace triptych::cpu
