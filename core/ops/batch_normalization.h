// Batch normalisation (Ioffe and Szegedy, 2015), its training form and its gradient.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// y = scale (x - mean) / sqrt(var + epsilon) + bias per channel. Inputs x: [N, C, ...], scale,
/// bias, mean, var: [C]. Inference (training_mode 0): one output y. Training: mean and biased
/// variance of the batch are used. Outputs y, mean' = momentum mean + (1 - momentum) batch mean and
/// var' likewise (both update their inputs in place), the batch mean and 1 / sqrt(batch var +
/// epsilon) for the gradient. f32. Sums run in the stated tree (core/base/reduction.h), the plane
/// of each image a row. With an activation it is composite.
struct BatchNormalization : OpOf<BatchNormalization> {
  static constexpr std::string_view kName = "BatchNormalization";
  static constexpr std::string_view kSummary =
      "y = scale (x - mean) / sqrt(var + epsilon) + bias, per channel";
  float epsilon = 1e-5F;
  float momentum = 0.9F;
  bool training_mode = false;
  std::string activation;  ///< "" or "relu", applied last to y. Set by fusion, not ONNX's

  static void visit(auto& self, auto& visitor) {
    visitor("epsilon", self.epsilon);
    visitor("momentum", self.momentum);
    visitor("training_mode", self.training_mode);
    visitor("activation", self.activation);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  bool composite() const override { return !activation.empty(); }
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
  std::vector<std::pair<int, int>> updates(int input_count) const override;
};

/// Values that a training form has read and saved.
struct SavedNormalization {
  ValueId x, scale, bias, mean, inverse_deviation;
};
/// Its y once more, the same bits: the inference form with factor = scale times inverse deviation
/// in the place of scale, and a deviation of exactly 1.
ValueId normalize_again(OpEmitter& emitter, const SavedNormalization& saved);

/// Gradient of the training form. Inputs x, dy, scale, batch mean, batch inverse deviation. Outputs
/// dx, dscale, dbias. With xhat = (x - mean) invstd, m = elements per channel:
/// dbias = sum dy, dscale = sum dy xhat, dx = scale invstd (dy - dbias / m - xhat dscale / m). f32.
/// With an activation it is composite and has a last input, bias. dy counts where the normalised
/// value, computed again from x to the bit, is above 0.
struct BatchNormalizationGradient : OpOf<BatchNormalizationGradient> {
  static constexpr std::string_view kName = "BatchNormalizationGradient";
  static constexpr std::string_view kSummary =
      "dx = scale invstd (dy - mean(dy) - xhat mean(dy xhat)), dscale = sum(dy xhat), dbias = "
      "sum(dy)";
  std::string activation;  ///< "" or "relu", between this and dy. Set by fusion

  static void visit(auto& self, auto& visitor) { visitor("activation", self.activation); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  /// Its expansion has no gradient either.
  bool differentiable() const override { return false; }
  bool composite() const override { return !activation.empty(); }
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
  /// dy: it is summed before dx is written.
  bool may_overwrite(int input) const override { return input == 1; }
};

}  // namespace triptych
