// Softmax and its logarithm along one axis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// y = exp(x - max) / sum exp(x - max) along `axis`. f32.
struct Softmax : OpOf<Softmax> {
  static constexpr std::string_view kName = "Softmax";
  static constexpr std::string_view kSummary =
      "y = exp(x - max) / sum of exp(x - max) along `axis`";
  std::int64_t axis = -1;

  static void visit(auto& self, auto& visitor) { visitor("axis", self.axis); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// y = x - max - log sum exp(x - max) along `axis`. f32.
struct LogSoftmax : OpOf<LogSoftmax> {
  static constexpr std::string_view kName = "LogSoftmax";
  static constexpr std::string_view kSummary =
      "y = x - max - log of sum of exp(x - max) along `axis`";
  std::int64_t axis = -1;

  static void visit(auto& self, auto& visitor) { visitor("axis", self.axis); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

}  // namespace triptych
