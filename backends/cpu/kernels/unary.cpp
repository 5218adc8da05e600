// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/elementwise_rows.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/ops/scalar_math.h"

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
UnaryRow number_row_of(DType dtype) {
  if (dtype == DType::I8) return &integer_row<kKind, std::int8_t>;
  if (dtype == DType::I32) return &integer_row<kKind, std::int32_t>;
  if (dtype == DType::I64) return &integer_row<kKind, std::int64_t>;
  return float_row_of<Formula<kKind>>(dtype);
}

}  // namespace

UnaryRow row_of(const Unary& op, DType dtype) {
  using enum UnaryKind;
  switch (op.kind) {
    case Relu:
      return number_row_of<Relu>(dtype);
    case LeakyRelu:
      return float_row_of<Formula<LeakyRelu>>(dtype);
    case Sigmoid:
      return float_row_of<Formula<Sigmoid>>(dtype);
    case Tanh:
      return float_row_of<Formula<Tanh>>(dtype);
    case Gelu:
      return op.approximate == "tanh" ? float_row_of<GeluTanh>(dtype)
                                      : float_row_of<Formula<Gelu>>(dtype);
    case Exp:
      return float_row_of<Formula<Exp>>(dtype);
    case Log:
      return float_row_of<Formula<Log>>(dtype);
    case Sqrt:
      return float_row_of<Formula<Sqrt>>(dtype);
    case Reciprocal:
      return float_row_of<Formula<Reciprocal>>(dtype);
    case Neg:
      return number_row_of<Neg>(dtype);
    case Abs:
      return number_row_of<Abs>(dtype);
    case Sign:
      return number_row_of<Sign>(dtype);
    case Erf:
      return float_row_of<Formula<Erf>>(dtype);
    case Clip:
      return number_row_of<Clip>(dtype);
    case Elu:
      return float_row_of<Formula<Elu>>(dtype);
    case Softplus:
      return float_row_of<Formula<Softplus>>(dtype);
    case Softsign:
      return float_row_of<Formula<Softsign>>(dtype);
    case Not:
      return &not_row;
  }
  return nullptr;
}

namespace {

class UnaryKernel : public Kernel {
 public:
  UnaryKernel(const KernelQuery& query, Device&)
      : UnaryKernel(query, query.as<Unary>(), query.outputs[0].spec) {}

  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    const auto* x = args.inputs[0];
    auto* y = args.outputs[0];
    loop_.run([&](const auto& at, std::int64_t count) {
      row_(x + at[1] * size_, y + at[0] * size_, count, parameters_);
    });
  }

 private:
  UnaryKernel(const KernelQuery& query, const Unary& op, const TensorSpec& y)
      : loop_(y.shape, {operand_strides(query.outputs[0], y.shape),
                        operand_strides(query.inputs[0], y.shape)}),
        row_(row_of(op, y.dtype)),
        parameters_{op.alpha, op.min, op.max},
        size_(static_cast<std::int64_t>(dtype_size(y.dtype))) {}

  ElementwiseLoop<2> loop_;
  UnaryRow row_;
  UnaryParameters parameters_;
  std::int64_t size_;
};

}  // namespace

void add_unary_kernels(KernelList& list) {
  for (const auto kind : all_unary_kinds()) {
    // Unary's names are literals: the entry's view outlives this object.
    list.push_back(kernel_entry<UnaryKernel>(Unary(kind).name(), "elementwise"));
  }
}

}  // namespace triptych::cpu
