// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"

#include <type_traits>

#include "backends/cpu/kernels/elementwise_rows.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/ops/scalar_math.h"

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

template <BinaryKind kKind, class T>
void binary_row(const RowOperands& row, std::int64_t count) {
  using C = ComputeType<T>;
  using Y = std::conditional_t<scalar::is_comparison(kKind), bool, T>;
  const auto* a = reinterpret_cast<const T*>(row.a);
  const auto* b = reinterpret_cast<const T*>(row.b);
  auto* y = reinterpret_cast<Y*>(row.y);
  if (std::is_same_v<T, C> && row.a_stride == 1 && row.b_stride == 1) {
    if constexpr (std::is_same_v<T, C>) array_row<kKind>(a, b, y, count);
    return;
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

template <int... kKinds>
BinaryRow row_among(BinaryKind kind, DType dtype, std::integer_sequence<int, kKinds...>) {
  BinaryRow row = nullptr;
  ((static_cast<int>(kind) == kKinds ? void(row = row_for<static_cast<BinaryKind>(kKinds)>(dtype))
                                     : void()),
   ...);
  return row;
}

constexpr auto kAllKinds = std::make_integer_sequence<int, static_cast<int>(TanhGradient) + 1>();

}  // namespace

BinaryRow row_of(BinaryKind kind, DType dtype) { return row_among(kind, dtype, kAllKinds); }

namespace {

class BinaryKernel : public Kernel {
 public:
  BinaryKernel(const KernelQuery& query, Device&)
      : BinaryKernel(query, query.outputs[0].spec.shape, query.inputs[0].spec.dtype) {}

  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    if (loop_.has_short_rows()) return run_rows(args);
    loop_.run([&](const auto& at, std::int64_t count) {
      row_({args.inputs[0] + at[1] * in_size_, args.inputs[1] + at[2] * in_size_,
            args.outputs[0] + at[0] * out_size_, loop_.row_stride(1), loop_.row_stride(2)},
           count);
    });
  }

 private:
  void run_rows(const KernelArgs& args) const {
    loop_.run_rows([&](const auto& at, std::int64_t rows) {
      alignas(64) std::byte buffers[2][kRowBlock * sizeof(std::int64_t)];
      const auto operand = [&](std::size_t k) {
        const auto* x = args.inputs[k - 1] + at[k] * in_size_;
        return gathered(x, loop_.group(k, rows), in_size_, buffers[k - 1]);
      };
      row_({operand(1), operand(2), args.outputs[0] + at[0] * out_size_, 1, 1},
           rows * loop_.row_size());
    });
  }

  BinaryKernel(const KernelQuery& query, const Shape& y, DType dtype)
      : loop_(y, {operand_strides(query.outputs[0], y), operand_strides(query.inputs[0], y),
                  operand_strides(query.inputs[1], y)}),
        row_(row_of(query.as<Binary>().kind, dtype)),
        in_size_(static_cast<std::int64_t>(dtype_size(dtype))),
        out_size_(static_cast<std::int64_t>(dtype_size(query.outputs[0].spec.dtype))) {}

  ElementwiseLoop<3> loop_;
  BinaryRow row_;
  std::int64_t in_size_, out_size_;
};

}  // namespace

void add_binary_kernels(KernelList& list) {
  for (const auto kind : all_binary_kinds()) {
    // Binary's names are literals: the entry's view outlives this object.
    list.push_back(kernel_entry<BinaryKernel>(Binary(kind).name(), "elementwise"));
  }
}

}  // namespace triptych::cpu
