// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cast.h"

#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/node_rows.h"

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
      : rows_(query), row_(row_of(query.inputs[0].spec.dtype, query.outputs[0].spec.dtype)) {}

  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    rows_.run(args, [&](const auto& inputs, std::byte* y, std::int64_t count) {
      row_(inputs[0].x, y, count);
    });
  }

 private:
  NodeRows<1> rows_;
  CastRow row_;
};

}  // namespace

void add_cast_kernels(KernelList& list) {
  list.push_back(kernel_entry<CastKernel>("Cast", "elementwise"));
}

}  // namespace triptych::cpu
