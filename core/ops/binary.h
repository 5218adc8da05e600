// The family of elementwise operators with two inputs and broadcasting, written once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

enum class BinaryKind {
  Add,
  Sub,
  Mul,
  Div,
  Pow,
  Min,
  Max,  // same dtype out
  Equal,
  Less,
  LessOrEqual,
  Greater,
  GreaterOrEqual,  // bool out
  And,
  Or,  // bool in, bool out
  ReluGradient,
  SigmoidGradient,
  TanhGradient  // (dy, y), same shape, f32
};

/// Every kind, in the order of the enum.
std::span<const BinaryKind> all_binary_kinds();

/// y = f(a, b) with NumPy broadcasting. Arithmetic: f32, bf16, f16 (computed in float32), i32, i64
/// (wrapping, integer Div truncates, x / 0 = 0, integer Pow truncates). Comparisons take the same
/// dtypes. ReluGradient = dy where y > 0, SigmoidGradient =
/// dy y (1 - y), TanhGradient = dy (1 - y^2).
struct Binary : OpFamily<Binary> {
  BinaryKind kind = BinaryKind::Add;

  Binary() = default;
  explicit Binary(BinaryKind binary_kind) : kind(binary_kind) {}

  std::string_view name() const override;
  std::string_view summary() const override;
  static void visit(auto&, auto&) {}  // its name says the kind
  std::vector<TensorSpec> infer(Specs inputs) const override;
  bool differentiable() const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
  /// Both, as far as the input has the output's shape and dtype (the plan checks that).
  bool may_overwrite(int) const override { return true; }
};

/// `gradient` summed over the axes along which a value of shape `shape` was broadcast.
ValueId reduce_to_shape(OpEmitter& emitter, ValueId gradient, const Shape& shape);

}  // namespace triptych
