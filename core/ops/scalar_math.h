// The float32 formulas of elementwise operators, per element, as every backend's kernels evaluate
// them: shared, so that the exact contract holds to the last bit, and compiled by g++ and nvcc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/exact_math.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace triptych::scalar {

using exact::select;

/// Unary's attributes as formulas need them.
struct UnaryParameters {
  float alpha = 0;
  float min = 0;
  float max = 0;
};

/// Any kind but Not; Gelu in its erf form. Relu gives +0 for -0 and keeps NaN.
template <UnaryKind kKind>
TRIPTYCH_ALWAYS_INLINE float unary(float x, const UnaryParameters& parameters) {
  using enum UnaryKind;
  if constexpr (kKind == Relu) return select(x <= 0, 0, x);
  if constexpr (kKind == LeakyRelu) return select(x > 0, x, parameters.alpha * x);
  if constexpr (kKind == Sigmoid) return exact::sigmoid(x);
  if constexpr (kKind == Tanh) return exact::tanh(x);
  if constexpr (kKind == Gelu) return 0.5F * x * (1.0F + exact::erf(x * 0.707106781F));
  if constexpr (kKind == Exp) return exact::exp(x);
  if constexpr (kKind == Log) return exact::log(x);
  if constexpr (kKind == Sqrt) return std::sqrt(x);
  if constexpr (kKind == Reciprocal) return 1.0F / x;
  if constexpr (kKind == Neg) return -x;
  if constexpr (kKind == Abs) return exact::absolute(x);
  if constexpr (kKind == Sign) return static_cast<float>(x > 0) - static_cast<float>(x < 0);
  if constexpr (kKind == Erf) return exact::erf(x);
  if constexpr (kKind == Clip) {
    const float raised = select(x < parameters.min, parameters.min, x);
    return select(raised > parameters.max, parameters.max, raised);
  }
}

/// Gelu with approximate=tanh: x / 2 (1 + tanh u) = x sigmoid(2 u), which does not cancel.
TRIPTYCH_ALWAYS_INLINE float gelu_tanh(float x) {
  const float cubic = std::fma(0.044715F * x * x, x, x);
  return x * exact::sigmoid(1.59576912F * cubic);
}

/// Arithmetic and gradient kinds.
template <BinaryKind kKind>
TRIPTYCH_ALWAYS_INLINE float binary(float a, float b) {
  using enum BinaryKind;
  if constexpr (kKind == Add) return a + b;
  if constexpr (kKind == Sub) return a - b;
  if constexpr (kKind == Mul) return a * b;
  if constexpr (kKind == Div) return a / b;
  if constexpr (kKind == Pow) return exact::pow(a, b);
  if constexpr (kKind == Min) return select((b < a) | (b != b), b, a);
  if constexpr (kKind == Max) return select((b > a) | (b != b), b, a);
  if constexpr (kKind == ReluGradient) return select(b > 0, a, 0);
  if constexpr (kKind == SigmoidGradient) return a * b * (1.0F - b);
  if constexpr (kKind == TanhGradient) return a * std::fma(-b, b, 1.0F);
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

/// 1 / sqrt(variance + epsilon).
TRIPTYCH_ALWAYS_INLINE float inverse_deviation(float variance, float epsilon) {
  return 1.0F / std::sqrt(variance + epsilon);
}

/// BatchNormalization of one element; `factor` = scale * inverse deviation.
TRIPTYCH_ALWAYS_INLINE float normalize(float x, float mean, float factor, float bias) {
  return std::fma(x - mean, factor, bias);
}

/// momentum old + (1 - momentum) batch.
TRIPTYCH_ALWAYS_INLINE float running_average(float old, float batch, float momentum) {
  return std::fma(momentum, old, (1.0F - momentum) * batch);
}

/// dx of BatchNormalization; `factor` as in normalize, the means over the channel's elements.
TRIPTYCH_ALWAYS_INLINE float normalize_gradient(float xhat, float dy, float mean_dy,
                                                float mean_dy_xhat, float factor) {
  return factor * std::fma(-xhat, mean_dy_xhat, dy - mean_dy);
}

/// max(x, 0) - x z + log(1 + exp(-|x|)).
TRIPTYCH_ALWAYS_INLINE float binary_cross_entropy(float x, float z) {
  return std::fma(-x, z, select(x > 0, x, 0)) + exact::softplus_of_minus(x);
}

/// SgdUpdate's hyperparameters and its formula per element. `p` and `v` are updated in place.
struct Sgd {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;
  bool first = false;  ///< step 0: v = g

  TRIPTYCH_ALWAYS_INLINE void update(float& p, float gradient, float& v) const {
    const float g = std::fma(weight_decay, p, gradient);
    v = select(first, g, std::fma(momentum, v, g));
    const float direction = select(nesterov, std::fma(momentum, v, g), v);
    p = std::fma(-learning_rate, direction, p);
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

  TRIPTYCH_ALWAYS_INLINE void update(float& p, float gradient, float& m, float& v) const {
    const float g = std::fma(select(decoupled, 0, weight_decay), p, gradient);
    const float kept = std::fma(select(decoupled, -learning_rate * weight_decay, 0), p, p);
    m = std::fma(beta1, m, (1.0F - beta1) * g);
    v = std::fma(beta2, v, (1.0F - beta2) * g * g);
    p = kept - step_size * (m / (std::sqrt(v) / root_correction + epsilon));
  }
};

}  // namespace triptych::scalar
