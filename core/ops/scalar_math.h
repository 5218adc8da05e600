// The float32 formulas of elementwise operators, per element, as every backend's kernels evaluate
// them: shared, so that the exact contract holds to the last bit, and compiled by g++ and nvcc.
// Computed values are never another NaN than the canonical one. Results that only select a value or
// turn its sign may be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/base/exact_activations.h"
#include "core/ops/binary.h"
#include "core/ops/optimizers.h"
#include "core/ops/unary.h"
#include "core/tensor/dtype.h"

namespace triptych::scalar {

using exact::canonical;
using exact::select;

/// Unary's attributes as formulas need them.
struct UnaryParameters {
  float alpha = 0;
  float min = 0;
  float max = 0;
};

/// Any kind except Not. Gelu in its erf form. Relu gives +0 for -0 and keeps NaN.
template <UnaryKind kKind>
TRIPTYCH_ALWAYS_INLINE float unary(float x, const UnaryParameters& parameters) {
  using enum UnaryKind;
  if constexpr (kKind == Relu) return exact::relu(x);
  if constexpr (kKind == LeakyRelu) return select(x > 0, x, canonical(parameters.alpha * x));
  if constexpr (kKind == Sigmoid) return exact::sigmoid(x);
  if constexpr (kKind == Tanh) return exact::tanh(x);
  if constexpr (kKind == Gelu) {
    return canonical(0.5F * x * (1.0F + exact::erf(x * 0.707106781F)));
  }
  if constexpr (kKind == Exp) return exact::exp(x);
  if constexpr (kKind == Log) return exact::log(x);
  if constexpr (kKind == Sqrt) return canonical(std::sqrt(x));
  if constexpr (kKind == Reciprocal) return canonical(1.0F / x);
  if constexpr (kKind == Neg) return exact::negated(x);
  if constexpr (kKind == Abs) return exact::absolute(x);
  if constexpr (kKind == Sign) {
    return canonical(select(x != x, x, static_cast<float>(x > 0) - static_cast<float>(x < 0)));
  }
  if constexpr (kKind == Erf) return exact::erf(x);
  if constexpr (kKind == Clip) {
    const float raised = select(x < parameters.min, parameters.min, x);
    return select(raised > parameters.max, parameters.max, raised);
  }
  if constexpr (kKind == Elu) return exact::elu(x, parameters.alpha);
  if constexpr (kKind == Softplus) return exact::softplus(x);
  if constexpr (kKind == Softsign) return canonical(x / (1.0F + exact::absolute(x)));
}

/// Gelu with approximate=tanh: x / 2 (1 + tanh u) = x sigmoid(2 u), which does not cancel.
TRIPTYCH_ALWAYS_INLINE float gelu_tanh(float x) {
  const float cubic = std::fma(0.044715F * x * x, x, x);
  return canonical(x * exact::sigmoid(1.59576912F * cubic));
}

/// Arithmetic and gradient kinds.
template <BinaryKind kKind>
TRIPTYCH_ALWAYS_INLINE float binary(float a, float b) {
  using enum BinaryKind;
  if constexpr (kKind == Add) return canonical(a + b);
  if constexpr (kKind == Sub) return canonical(a - b);
  if constexpr (kKind == Mul) return canonical(a * b);
  if constexpr (kKind == Div) return canonical(a / b);
  if constexpr (kKind == Pow) return exact::pow(a, b);
  if constexpr (kKind == Min) return select((b < a) | (b != b), b, a);
  if constexpr (kKind == Max) return select((b > a) | (b != b), b, a);
  if constexpr (kKind == ReluGradient) return select(b > 0, a, 0);
  if constexpr (kKind == SigmoidGradient) return canonical(a * b * (1.0F - b));
  if constexpr (kKind == TanhGradient) return canonical(a * std::fma(-b, b, 1.0F));
}

/// Comparisons of any type of number.
template <BinaryKind kKind, class T>
TRIPTYCH_ALWAYS_INLINE bool compare(T a, T b) {
  using enum BinaryKind;
  if constexpr (kKind == Equal) return a == b;
  if constexpr (kKind == Less) return a < b;
  if constexpr (kKind == LessOrEqual) return a <= b;
  if constexpr (kKind == Greater) return a > b;
  if constexpr (kKind == GreaterOrEqual) return a >= b;
}

/// The lowest or highest T inside a limit of Clip.
template <class T>
TRIPTYCH_HOST_DEVICE T saturate(float limit) {
  constexpr auto low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  if (double{limit} <= static_cast<double>(low)) return low;
  return double{limit} >= static_cast<double>(high) ? high : static_cast<T>(limit);
}

/// Any kind that integers have.
template <UnaryKind kKind, class T>
TRIPTYCH_HOST_DEVICE T integer_unary(T x, const UnaryParameters& parameters) {
  using enum UnaryKind;
  using Unsigned = std::make_unsigned_t<T>;
  const auto negated = static_cast<T>(Unsigned{0} - static_cast<Unsigned>(x));
  if constexpr (kKind == Neg) return negated;
  if constexpr (kKind == Abs) return x < 0 ? negated : x;
  if constexpr (kKind == Sign) return static_cast<T>((x > 0) - (x < 0));
  if constexpr (kKind == Relu) return x < 0 ? T{0} : x;
  if constexpr (kKind == Clip) {
    return std::min(std::max(x, saturate<T>(parameters.min)), saturate<T>(parameters.max));
  }
}

constexpr bool is_comparison(BinaryKind kind) {
  return kind >= BinaryKind::Equal && kind <= BinaryKind::GreaterOrEqual;
}
constexpr bool is_logic(BinaryKind kind) {
  return kind == BinaryKind::And || kind == BinaryKind::Or;
}

/// Wraps. A negative exponent truncates a^b to an integer.
template <class T>
TRIPTYCH_HOST_DEVICE T integer_pow(T a, T b) {
  if (b < 0) return a == 1 ? T{1} : a == -1 ? (b % 2 == 0 ? T{1} : T{-1}) : T{0};
  using Unsigned = std::make_unsigned_t<T>;
  Unsigned result = 1;
  for (auto power = static_cast<Unsigned>(a); b > 0; b /= 2, power *= power) {
    if (b % 2 == 1) result *= power;
  }
  return static_cast<T>(result);
}

/// Any kind that integers have. Sums and products wrap.
template <BinaryKind kKind, class T>
TRIPTYCH_HOST_DEVICE T integer_binary(T a, T b) {
  using enum BinaryKind;
  using Unsigned = std::make_unsigned_t<T>;
  const auto ua = static_cast<Unsigned>(a), ub = static_cast<Unsigned>(b);
  if constexpr (kKind == Add) return static_cast<T>(ua + ub);
  if constexpr (kKind == Sub) return static_cast<T>(ua - ub);
  if constexpr (kKind == Mul) return static_cast<T>(ua * ub);
  if constexpr (kKind == Div) {
    if (b == -1) return static_cast<T>(Unsigned{0} - ua);
    return b == 0 ? T{0} : static_cast<T>(a / b);
  }
  if constexpr (kKind == Pow) return integer_pow(a, b);
  if constexpr (kKind == Min) return std::min(a, b);
  if constexpr (kKind == Max) return std::max(a, b);
}

/// Any kind: of float, of integers, or of bool.
template <BinaryKind kKind, class C>
TRIPTYCH_ALWAYS_INLINE auto apply(C a, C b) {
  if constexpr (is_comparison(kKind)) {
    return compare<kKind>(a, b);
  } else if constexpr (kKind == BinaryKind::And) {
    return a && b;
  } else if constexpr (kKind == BinaryKind::Or) {
    return a || b;
  } else if constexpr (std::is_same_v<C, float>) {
    return binary<kKind>(a, b);
  } else {
    return integer_binary<kKind>(a, b);
  }
}

/// The type that elements of T are computed in: float for the floating types.
template <class T>
using ComputeType = std::conditional_t<is_floating(dtype_of<T>), float, T>;

/// Truncated and saturated. NaN gives 0.
template <class To>
TRIPTYCH_HOST_DEVICE To to_integer(float value) {
  constexpr auto low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  // high + 1 is a power of two, which float holds exactly. High may not be.
  constexpr auto half = high / 2 + 1;
  constexpr float beyond = 2.0F * static_cast<float>(half);
  if (value != value) return 0;
  if (value >= beyond) return high;
  return value <= static_cast<float>(low) ? low : static_cast<To>(value);
}

/// Cast's rule.
template <class From, class To>
TRIPTYCH_HOST_DEVICE To convert(From value) {
  using Wide = ComputeType<From>;
  const auto wide = static_cast<Wide>(value);
  if constexpr (std::is_same_v<To, bool>) {
    return wide != Wide{0};
  } else if constexpr (is_floating(dtype_of<To>)) {
    return static_cast<To>(static_cast<float>(wide));
  } else if constexpr (std::is_same_v<Wide, float>) {
    return to_integer<To>(wide);
  } else {
    return static_cast<To>(wide);
  }
}

/// 1 / sqrt(variance + epsilon).
TRIPTYCH_ALWAYS_INLINE float inverse_deviation(float variance, float epsilon) {
  return canonical(1.0F / std::sqrt(variance + epsilon));
}

/// BatchNormalization of one element. `factor` = scale * inverse deviation.
TRIPTYCH_ALWAYS_INLINE float normalize(float x, float mean, float factor, float bias) {
  return canonical(std::fma(x - mean, factor, bias));
}

/// momentum old + (1 - momentum) batch.
TRIPTYCH_ALWAYS_INLINE float running_average(float old, float batch, float momentum) {
  return canonical(std::fma(momentum, old, (1.0F - momentum) * batch));
}

/// dx of BatchNormalization. `factor` as in normalize, the means over the channel's elements.
TRIPTYCH_ALWAYS_INLINE float normalize_gradient(float xhat, float dy, float mean_dy,
                                                float mean_dy_xhat, float factor) {
  return canonical(factor * std::fma(-xhat, mean_dy_xhat, dy - mean_dy));
}

/// max(x, 0) - x z + log(1 + exp(-|x|)).
TRIPTYCH_ALWAYS_INLINE float binary_cross_entropy(float x, float z) {
  return canonical(std::fma(-x, z, select(x > 0, x, 0)) + exact::softplus_of_minus(x));
}

/// dx of the mean above. `scale` = dloss / elements.
TRIPTYCH_ALWAYS_INLINE float binary_cross_entropy_gradient(float x, float z, float scale) {
  return canonical(scale * (exact::sigmoid(x) - z));
}

/// Softmax of one element of a line with this maximum and sum of exp(x - largest).
TRIPTYCH_ALWAYS_INLINE float probability(float x, float largest, float sum) {
  return canonical(exact::exp(x - largest) / sum);
}
TRIPTYCH_ALWAYS_INLINE float log_probability(float x, float largest, float log_sum) {
  return canonical(x - largest - log_sum);
}

/// SoftmaxCrossEntropyLoss of one line. The score of its label is x.
TRIPTYCH_ALWAYS_INLINE float cross_entropy(float x, float largest, float sum) {
  return canonical((largest - x) + exact::log(sum));
}

/// dx of one element of probability p. `scale` = dloss / count, 0 where the label does not count.
TRIPTYCH_ALWAYS_INLINE float cross_entropy_gradient(float p, bool is_label, float scale) {
  return canonical(select(is_label, scale * (p - 1.0F), select(scale == 0, 0, scale * p)));
}

/// SgdUpdate's hyperparameters and its formula per element. `p` and `v` are updated in place.
struct Sgd {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;
  bool first = false;  ///< step 0: v = g

  /// Before the update that follows `finished` others.
  TRIPTYCH_HOST_DEVICE void begin_step(float rate, std::int64_t finished) {
    learning_rate = rate;
    first = finished == 0;
  }
  TRIPTYCH_ALWAYS_INLINE void update(float& p, float gradient, float& v) const {
    const float g = std::fma(weight_decay, p, gradient);
    v = canonical(select(first, g, std::fma(momentum, v, g)));
    const float direction = select(nesterov, std::fma(momentum, v, g), v);
    p = canonical(std::fma(-learning_rate, direction, p));
  }
};

/// AdamUpdate's hyperparameters, the corrections of step t (bias_correction) and its formula.
struct Adam {
  float learning_rate = 0;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float weight_decay = 0;
  bool decoupled = false;
  float step_size = 0;        ///< learning_rate / (1 - beta1^t)
  float root_correction = 0;  ///< sqrt(1 - beta2^t)

  /// Before the update that follows `finished` others.
  TRIPTYCH_HOST_DEVICE void begin_step(float rate, std::int64_t finished) {
    learning_rate = rate;
    step_size = static_cast<float>(double{rate} / bias_correction(beta1, finished + 1));
    root_correction = static_cast<float>(std::sqrt(bias_correction(beta2, finished + 1)));
  }
  TRIPTYCH_ALWAYS_INLINE void update(float& p, float gradient, float& m, float& v) const {
    const float g = std::fma(select(decoupled, 0, weight_decay), p, gradient);
    const float kept = std::fma(select(decoupled, -learning_rate * weight_decay, 0), p, p);
    m = canonical(std::fma(beta1, m, (1.0F - beta1) * g));
    v = canonical(std::fma(beta2, v, (1.0F - beta2) * g * g));
    p = canonical(kept - step_size * (m / (std::sqrt(v) / root_correction + epsilon)));
  }
};

}  // namespace triptych::scalar
