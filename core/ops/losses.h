// Losses. Each gives one number, the mean over its elements, unless said otherwise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// loss = mean over i of max(x, 0) - x z + log(1 + exp(-|x|)). Inputs: logits x, targets z in [0,
/// 1] of the same shape. f32, output rank 0. Sums run in the stated tree (core/base/reduction.h).
struct BinaryCrossEntropyWithLogits : OpOf<BinaryCrossEntropyWithLogits> {
  static constexpr std::string_view kName = "BinaryCrossEntropyWithLogits";
  static constexpr std::string_view kSummary =
      "loss = mean of max(x, 0) - x z + log(1 + exp(-|x|))";

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// dx = dloss (sigmoid(x) - z) / elements. Inputs: x, z, dloss (one element). f32.
struct BinaryCrossEntropyWithLogitsGradient : OpOf<BinaryCrossEntropyWithLogitsGradient> {
  static constexpr std::string_view kName = "BinaryCrossEntropyWithLogitsGradient";
  static constexpr std::string_view kSummary = "dx = dloss (sigmoid(x) - z) / elements";

  std::vector<TensorSpec> infer(Specs inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// loss = -mean over pixels of log softmax(x)[label], over axis 1. Inputs: scores x [N, C, ...]
/// f32, labels [N, ...] i32 or i64. Labels equal to ignore_index do not count. reduction: mean, sum
/// or none (then the output has the labels' shape). A label outside [0, C) that is not ignore_index
/// counts as ignored. Constant ones are refused at plan time. The mean over no label is 0.
struct SoftmaxCrossEntropyLoss : OpOf<SoftmaxCrossEntropyLoss> {
  static constexpr std::string_view kName = "SoftmaxCrossEntropyLoss";
  static constexpr std::string_view kSummary = "loss = -mean of log softmax(x)[label]";
  std::string reduction = "mean";
  std::int64_t ignore_index = -1;

  static void visit(auto& self, auto& visitor) {
    visitor("reduction", self.reduction);
    visitor("ignore_index", self.ignore_index);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;

  /// Emits the denominator of the mean, one f32 element: the number of labels that count. The
  /// means of shares of a batch, each times its denominator, add up to the numerator of the batch.
  ValueId denominator(OpEmitter& emitter, ValueId scores, ValueId labels) const;
};

/// dx = dloss (softmax(x) - onehot(label)) / count, 0 for an ignored label (count: labels that are
/// not ignored, or 1 for reductions sum and none). Inputs x, labels, dloss (one element, or for
/// reduction none the labels' shape). f32.
struct SoftmaxCrossEntropyLossGradient : OpOf<SoftmaxCrossEntropyLossGradient> {
  static constexpr std::string_view kName = "SoftmaxCrossEntropyLossGradient";
  static constexpr std::string_view kSummary = "dx = dloss (softmax(x) - onehot(label)) / count";
  std::string reduction = "mean";
  std::int64_t ignore_index = -1;

  static void visit(auto& self, auto& visitor) {
    visitor("reduction", self.reduction);
    visitor("ignore_index", self.ignore_index);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// loss = 1 - (2 sum p z + smooth) / (sum p + sum z + smooth), p = sigmoid(x), sums over
/// everything. Inputs: logits x, targets z of the same shape. f32, output rank 0. Milletari et al.,
/// 2016 (the sum form).
struct DiceLoss : OpOf<DiceLoss> {
  static constexpr std::string_view kName = "DiceLoss";
  static constexpr std::string_view kSummary =
      "loss = 1 - (2 sum p z + smooth) / (sum p + sum z + smooth), p = sigmoid(x)";
  float smooth = 1;

  static void visit(auto& self, auto& visitor) { visitor("smooth", self.smooth); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

}  // namespace triptych
