// Optimiser steps over a list of parameters, updated in place. The formulas are PyTorch's, so that
// the same hyperparameters mean the same. Learning rate and step number are inputs: no plan changes
// when they do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/host_device.h"
#include "core/ops/op.h"

namespace triptych {

/// Inputs: learning_rate (f32 scalar), step (i64 scalar state, finished updates), then n
/// parameters, n gradients and, with momentum, n velocities. g += weight_decay p, v = momentum v +
/// g (v = g at step 0), p -= learning_rate (nesterov ? g + momentum v : v). Outputs: step + 1, n
/// parameters, n velocities, each in place. f32. Sutskever et al., 2013.
struct SgdUpdate : OpOf<SgdUpdate> {
  static constexpr std::string_view kName = "SgdUpdate";
  static constexpr std::string_view kSummary = "v = momentum v + g; p -= learning_rate v";
  /// For parameters and gradients of size 1 and learning rates up to 0.01.
  static constexpr ErrorBound kErrorBound = {.ulps = 4, .absolute = 0x1p-21};
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;

  static void visit(auto& self, auto& visitor) {
    visitor("momentum", self.momentum);
    visitor("weight_decay", self.weight_decay);
    visitor("nesterov", self.nesterov);
  }
  /// Number of parameters for this many inputs. Throws InvalidArgument when it does not divide.
  int parameter_count(int input_count) const;
  std::vector<TensorSpec> infer(Specs inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  std::vector<std::pair<int, int>> updates(int input_count) const override;
};

/// 1 - beta^t in float64, the power by repeated squaring: the same bits on every backend. Kernels
/// use f32(learning_rate / bias_correction(beta1, t)) and f32(sqrt(bias_correction(beta2, t))),
/// each computed in float64 and rounded once: in float32 the difference would lose half its digits.
TRIPTYCH_HOST_DEVICE constexpr double bias_correction(float beta, std::int64_t t) {
  double power = 1;
  for (double square = beta; t > 0; t /= 2, square *= square) {
    if (t % 2 == 1) power *= square;
  }
  return 1 - power;
}

/// Inputs: learning_rate (f32 scalar), step (i64 scalar state, finished updates), then n
/// parameters, n gradients, n first and n second moments. With t = step + 1: g += weight_decay p
/// (decoupled: p -= learning_rate weight_decay p instead, AdamW), m = beta1 m + (1 - beta1) g, v =
/// beta2 v + (1 - beta2) g^2, p -= learning_rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) +
/// epsilon). Outputs: step + 1, n parameters, n first, n second moments, each in place. f32. Kingma
/// and Ba, 2015. Loshchilov and Hutter, 2019.
struct AdamUpdate : OpOf<AdamUpdate> {
  static constexpr std::string_view kName = "AdamUpdate";
  static constexpr std::string_view kSummary =
      "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr m_hat / (sqrt(v_hat) + "
      "epsilon)";
  /// For parameters and gradients of size 1 and learning rates up to 0.01.
  static constexpr ErrorBound kErrorBound = {.ulps = 4, .absolute = 0x1p-21};
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0;
  bool decoupled = false;

  static void visit(auto& self, auto& visitor) {
    visitor("beta1", self.beta1);
    visitor("beta2", self.beta2);
    visitor("epsilon", self.epsilon);
    visitor("weight_decay", self.weight_decay);
    visitor("decoupled", self.decoupled);
  }
  int parameter_count(int input_count) const;
  std::vector<TensorSpec> infer(Specs inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  std::vector<std::pair<int, int>> updates(int input_count) const override;
};

}  // namespace triptych
