// The gradient of attention, and the form of attention that it reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attention.h"

namespace triptych {

/// y of Attention, and per query the logarithm of the sum of exp(score) over the keys that it sees:
/// sums [B, H, Lq]. It exists in plans only, where save_attention_sums puts it in the place of an
/// Attention that has a gradient.
struct AttentionWithSums : OpOf<AttentionWithSums>, AttentionAttributes {
  static constexpr std::string_view kName = "AttentionWithSums";
  static constexpr std::string_view kSummary =
      "y = softmax(scale q k') v, and the logarithms of the sums of exp(scale q k')";
  static constexpr int kMultiplicands[] = {0, 1, 2};

  static void visit(auto& self, auto& visitor) { visit_attention(self, visitor); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// With P the probabilities of Attention, dP = dy v' and dS = scale P (dP - sum over keys of P dP):
/// dq = dS k, dk = dS' q, dv = P' dy. f32.
/// Inputs q, k, v, y and dy, with y the output of Attention for q, k and v. In plans also `sums` of
/// AttentionWithSums. Kernels may compute P = exp(scale q k' - sums), and the sum over keys as the
/// sum over columns of dy y. Outputs dq, dk, dv, shaped as q, k, v.
/// bf16 contracts: P and dS are operands of products, and rounded like the others. bf16-exact: the
/// gradients of the operators in Attention's expansion, one after the other.
struct AttentionGradient : OpOf<AttentionGradient>, AttentionAttributes {
  static constexpr std::string_view kName = "AttentionGradient";
  static constexpr std::string_view kSummary =
      "dv = P' dy, dS = scale P (dy v' - row sum(P (dy v'))), dq = dS k, dk = dS' q";
  static constexpr int kMultiplicands[] = {0, 1, 2, 4};
  static constexpr std::size_t kSums = 5;  ///< number of the input `sums`

  static void visit(auto& self, auto& visitor) { visit_attention(self, visitor); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

}  // namespace triptych
