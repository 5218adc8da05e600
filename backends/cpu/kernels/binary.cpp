// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"

#include <type_traits>

#include "backends/cpu/kernels/elementwise_rows.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/node_rows.h"
#include "core/ops/scalar_math.h"
#include "core/ops/visit_kind.h"

namespace triptych::cpu {
namespace {

using enum BinaryKind;

template <BinaryKind kKind, class C, class Y>
void array_row(const C* a, const C* b, Y* y, std::int64_t count) {
  simd([=] {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = scalar::apply<kKind>(a[i], b[i]);
  });
}

/// A row of floats, where one operand may be one element for all of it.
template <BinaryKind kKind, class Y>
void float_row(const float* a, const float* b, Y* y, std::int64_t count, const RowOperands& row) {
  if (row.a_stride == 1 && row.b_stride == 1) return array_row<kKind>(a, b, y, count);
  simd([=, a_all = *a, b_all = *b, b_moves = row.b_stride == 1] {
    if (b_moves) {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) y[i] = scalar::apply<kKind>(a_all, b[i]);
    } else {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) y[i] = scalar::apply<kKind>(a[i], b_all);
    }
  });
}

template <BinaryKind kKind, class T>
void binary_row(const RowOperands& row, std::int64_t count) {
  using C = ComputeType<T>;
  using Y = std::conditional_t<scalar::is_comparison(kKind), bool, T>;
  const auto* a = reinterpret_cast<const T*>(row.a);
  const auto* b = reinterpret_cast<const T*>(row.b);
  auto* y = reinterpret_cast<Y*>(row.y);
  if constexpr (std::is_same_v<T, float>) {
    if (row.a_stride == 1 || row.b_stride == 1) return float_row<kKind>(a, b, y, count, row);
  } else if constexpr (std::is_same_v<T, C>) {
    if (row.a_stride == 1 && row.b_stride == 1) return array_row<kKind>(a, b, y, count);
  }
  C a_buffer[kRowBlock], b_buffer[kRowBlock];
  for (std::int64_t begin = 0; begin < count; begin += kRowBlock) {
    const auto size = std::min(kRowBlock, count - begin);
    const C* a_block = as_array(a + begin * row.a_stride, row.a_stride, size, a_buffer);
    const C* b_block = as_array(b + begin * row.b_stride, row.b_stride, size, b_buffer);
    if constexpr (std::is_same_v<T, C> || scalar::is_comparison(kKind)) {
      array_row<kKind>(a_block, b_block, y + begin, size);
    } else {
      array_row<kKind>(a_block, b_block, a_buffer, size);
      for (std::int64_t i = 0; i < size; ++i) y[begin + i] = static_cast<T>(a_buffer[i]);
    }
  }
}

template <BinaryKind kKind>
BinaryRow row_for(DType dtype) {
  if constexpr (scalar::is_logic(kKind)) {
    return &binary_row<kKind, bool>;
  } else if constexpr (kKind >= ReluGradient) {
    return &binary_row<kKind, float>;
  } else {
    if (dtype == DType::BF16) return &binary_row<kKind, BFloat16>;
    if (dtype == DType::F16) return &binary_row<kKind, Float16>;
    if (dtype == DType::I32) return &binary_row<kKind, std::int32_t>;
    if (dtype == DType::I64) return &binary_row<kKind, std::int64_t>;
    return &binary_row<kKind, float>;
  }
}

}  // namespace

BinaryRow row_of(BinaryKind kind, DType dtype) {
  return visit_kind<TanhGradient>(kind, [&](auto one) { return row_for<one()>(dtype); });
}

namespace {

class BinaryKernel : public Kernel {
 public:
  BinaryKernel(const KernelQuery& query, Device&)
      : rows_(query), row_(row_of(query.as<Binary>().kind, query.inputs[0].spec.dtype)) {}

  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    rows_.run_gathered(args, [&](const auto& inputs, std::byte* y, std::int64_t count) {
      row_({inputs[0].x, inputs[1].x, y, inputs[0].stride, inputs[1].stride}, count);
    });
  }

 private:
  NodeRows<2> rows_;
  BinaryRow row_;
};

}  // namespace

void add_binary_kernels(KernelList& list) {
  for (const auto kind : all_binary_kinds()) {
    // Binary's names are literals: the entry's view outlives this object.
    list.push_back(kernel_entry<BinaryKernel>(Binary(kind).name(), "elementwise"));
  }
}

}  // namespace triptych::cpu
