// A chain of elementwise operators as one operator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace triptych {

/// One operator of a chain: a Unary of the previous result, or a Binary of that and another input.
struct ChainStep {
  static constexpr int kPrevious = -1;

  std::optional<Unary> unary;  ///< else `binary`
  BinaryKind binary = BinaryKind::Add;
  int a = kPrevious, b = kPrevious;  ///< operands: inputs by number, or the previous result

  OpPtr op() const;
};

/// y = the value after the last of `steps`, which starts with input 0. "Add(., 1); Relu(.)" is
/// Relu(Add(input 0, input 1)). A dot denotes the previous result. Attributes that differ from the
/// kind's defaults follow it: "Clip(., min=0, max=1)". The kinds are those of Unary, without Gelu's
/// approximation, and Binary that take and give f32. Inputs broadcast to y, f32. All contracts: the
/// bits of the operators one after another. The error bound holds for chains without cancellation:
/// Add, Mul, Relu, Abs, Max, Min.
struct FusedElementwise : OpOf<FusedElementwise> {
  static constexpr std::string_view kName = "FusedElementwise";
  static constexpr std::string_view kSummary = "y = the last of a chain of elementwise operators";
  static constexpr std::size_t kMostSteps = 8, kMostInputs = 6;
  std::string steps;

  static void visit(auto& self, auto& visitor) { visitor("steps", self.steps); }
  /// Throws InvalidArgument unless `steps` is a chain with operands among `inputs` inputs.
  std::vector<ChainStep> chain(std::size_t inputs) const;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
  /// As far as the input has the output's shape (the plan checks that).
  bool may_overwrite(int) const override { return true; }
};

/// The chain as `steps` spells it.
std::string to_string(std::span<const ChainStep> chain);

/// The operator as a step, without names of its operands. None when it cannot be part of a chain.
std::optional<ChainStep> chain_step(const Op& op, Specs inputs);

}  // namespace triptych
