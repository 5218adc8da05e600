// Normalisations over parts of one sample. All expand to reductions and elementwise operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// Rounding of inputs of size 1 that a small variance enlarges. It has no magnitude to scale with.
inline constexpr ErrorBound kNormalizationBound{.ulps = 16, .absolute = 1e-5};

/// y = (x - mean) / sqrt(var + epsilon) scale + bias over axes [axis, rank). scale and the optional
/// bias broadcast to x. Ba et al., 2016. f32.
struct LayerNormalization : OpOf<LayerNormalization> {
  static constexpr std::string_view kName = "LayerNormalization";
  static constexpr std::string_view kSummary =
      "y = scale (x - mean) / sqrt(var + epsilon) + bias over axes from `axis` on";
  static constexpr ErrorBound kErrorBound = kNormalizationBound;
  std::int64_t axis = -1;
  float epsilon = 1e-5F;

  static void visit(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("epsilon", self.epsilon);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

/// y = scale (x - mean) / sqrt(var + epsilon) + bias over each group of C / num_groups channels of
/// each sample. x: [N, C, ...], scale, bias: [C] (as in opset 21). Wu and He, 2018. f32.
struct GroupNormalization : OpOf<GroupNormalization> {
  static constexpr std::string_view kName = "GroupNormalization";
  static constexpr std::string_view kSummary =
      "y = scale (x - mean) / sqrt(var + epsilon) + bias over each sample's groups of channels";
  static constexpr ErrorBound kErrorBound = kNormalizationBound;
  std::int64_t num_groups = 1;
  float epsilon = 1e-5F;

  static void visit(auto& self, auto& visitor) {
    visitor("num_groups", self.num_groups);
    visitor("epsilon", self.epsilon);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

/// GroupNormalization with one channel per group. Ulyanov et al., 2016. f32.
struct InstanceNormalization : OpOf<InstanceNormalization> {
  static constexpr std::string_view kName = "InstanceNormalization";
  static constexpr std::string_view kSummary =
      "y = scale (x - mean) / sqrt(var + epsilon) + bias over each plane of each sample";
  static constexpr ErrorBound kErrorBound = kNormalizationBound;
  float epsilon = 1e-5F;

  static void visit(auto& self, auto& visitor) { visitor("epsilon", self.epsilon); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

}  // namespace triptych
