// The family of elementwise operators with one input, written once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

enum class UnaryKind {
  Relu,
  LeakyRelu,
  Sigmoid,
  Tanh,
  Gelu,
  Exp,
  Log,
  Sqrt,
  Reciprocal,
  Neg,
  Abs,
  Sign,
  Erf,
  Clip,
  Elu,
  Softplus,
  Softsign,
  Not
};

/// Every kind, in the order of the enum.
std::span<const UnaryKind> all_unary_kinds();

/// y[i] = f(x[i]). Floating dtypes (computed in float32, rounded at the end). Neg, Abs, Sign, Relu
/// and Clip also take i8, i32 and i64 (Neg and Abs wrap). Not takes bool.
struct Unary : OpFamily<Unary> {
  UnaryKind kind = UnaryKind::Relu;
  float alpha = 0.01F;               ///< LeakyRelu: the slope below 0. Elu: -y far below 0, 1
  float min = -3.402823466e38F;      ///< Clip
  float max = 3.402823466e38F;       ///< Clip
  std::string approximate = "none";  ///< Gelu: "none" (erf) or "tanh"

  Unary() = default;
  explicit Unary(UnaryKind unary_kind)
      : kind(unary_kind), alpha(unary_kind == UnaryKind::Elu ? 1.0F : 0.01F) {}

  std::string_view name() const override;
  std::string_view summary() const override;
  static void visit(auto& self, auto& visitor) {
    const bool has_alpha = self.kind == UnaryKind::LeakyRelu || self.kind == UnaryKind::Elu;
    if (has_alpha) visitor("alpha", self.alpha);
    if (self.kind == UnaryKind::Clip) visitor("min", self.min);
    if (self.kind == UnaryKind::Clip) visitor("max", self.max);
    if (self.kind == UnaryKind::Gelu) visitor("approximate", self.approximate);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  bool differentiable() const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
  bool may_overwrite(int input) const override { return input == 0; }
};

}  // namespace triptych
