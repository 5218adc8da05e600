// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/elementwise_rows.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/node_rows.h"
#include "core/ops/scalar_math.h"
#include "core/ops/visit_kind.h"

namespace triptych::cpu {
namespace {

using scalar::UnaryParameters;

/// The float formulas as types, so that Gelu's second form is one more of them.
template <UnaryKind kKind>
struct Formula {
  UnaryParameters parameters;
  [[gnu::always_inline]] float operator()(float x) const {
    return scalar::unary<kKind>(x, parameters);
  }
};

struct GeluTanh {
  UnaryParameters parameters;
  [[gnu::always_inline]] float operator()(float x) const { return scalar::gelu_tanh(x); }
};

template <class F>
void float_row(const float* x, float* y, std::int64_t count, F f) {
  simd([=] {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = f(x[i]);
  });
}

template <class F, class T>
void unary_row(const std::byte* x_bytes, std::byte* y_bytes, std::int64_t count,
               const UnaryParameters& parameters) {
  const auto* x = reinterpret_cast<const T*>(x_bytes);
  auto* y = reinterpret_cast<T*>(y_bytes);
  if constexpr (std::is_same_v<T, float>) {
    float_row(x, y, count, F{parameters});
  } else {
    float values[kRowBlock];
    for (std::int64_t begin = 0; begin < count; begin += kRowBlock) {
      const auto size = std::min(kRowBlock, count - begin);
      as_array(x + begin, 1, size, values);
      float_row(values, values, size, F{parameters});
      for (std::int64_t i = 0; i < size; ++i) y[begin + i] = static_cast<T>(values[i]);
    }
  }
}

template <UnaryKind kKind, class T>
void integer_row(const std::byte* x_bytes, std::byte* y_bytes, std::int64_t count,
                 const UnaryParameters& parameters) {
  const auto* x = reinterpret_cast<const T*>(x_bytes);
  auto* y = reinterpret_cast<T*>(y_bytes);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = scalar::integer_unary<kKind>(x[i], parameters);
}

void not_row(const std::byte* x, std::byte* y, std::int64_t count, const UnaryParameters&) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = std::byte{x[i] == std::byte{0}};
}

template <class F>
UnaryRow float_row_of(DType dtype) {
  if (dtype == DType::BF16) return &unary_row<F, BFloat16>;
  if (dtype == DType::F16) return &unary_row<F, Float16>;
  return &unary_row<F, float>;
}

template <UnaryKind kKind>
UnaryRow row_for(DType dtype) {
  using enum UnaryKind;
  if constexpr (kKind == Not) return &not_row;
  if constexpr (kKind == Neg || kKind == Abs || kKind == Sign || kKind == Relu || kKind == Clip) {
    if (dtype == DType::I8) return &integer_row<kKind, std::int8_t>;
    if (dtype == DType::I32) return &integer_row<kKind, std::int32_t>;
    if (dtype == DType::I64) return &integer_row<kKind, std::int64_t>;
  }
  if constexpr (kKind != Not) return float_row_of<Formula<kKind>>(dtype);
}

}  // namespace

UnaryRow row_of(const Unary& op, DType dtype) {
  if (op.kind == UnaryKind::Gelu && op.approximate == "tanh") return float_row_of<GeluTanh>(dtype);
  return visit_kind<UnaryKind::Not>(op.kind, [&](auto one) { return row_for<one()>(dtype); });
}

std::int64_t operations_of(const Unary& op) {
  switch (op.kind) {
    using enum UnaryKind;
    case Relu:
    case LeakyRelu:
    case Neg:
    case Abs:
    case Sign:
    case Clip:
    case Not:
      return 1;
    default:
      return kSlowOperation;
  }
}

namespace {

class UnaryKernel : public Kernel {
 public:
  UnaryKernel(const KernelQuery& query, Device&) : UnaryKernel(query, query.as<Unary>()) {}

  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    rows_.run(args, [&](const auto& inputs, std::byte* y, std::int64_t count) {
      row_(inputs[0].x, y, count, parameters_);
    });
  }

 private:
  UnaryKernel(const KernelQuery& query, const Unary& op)
      : rows_(query, operations_of(op)),
        row_(row_of(op, query.outputs[0].spec.dtype)),
        parameters_{op.alpha, op.min, op.max} {}

  NodeRows<1> rows_;
  UnaryRow row_;
  UnaryParameters parameters_;
};

}  // namespace

void add_unary_kernels(KernelList& list) {
  for (const auto kind : all_unary_kinds()) {
    // Unary's names are literals: the entry's view outlives this object.
    list.push_back(kernel_entry<UnaryKernel>(Unary(kind).name(), "elementwise"));
  }
}

}  // namespace triptych::cpu
