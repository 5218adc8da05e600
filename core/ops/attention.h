// Scaled dot-product attention, defined by matrix products and Softmax.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// y = softmax(scale q k') v, per batch entry and head, with the softmax along the keys. Vaswani et
/// al., "Attention is all you need", 2017. f32.
/// q: [B, H, Lq, D], k: [B, G, Lk, D], v: [B, G, Lk, Dv], y: [B, H, Lq, Dv]. With merged heads q:
/// [B, Lq, H D], k: [B, Lk, G D], v: [B, Lk, G Dv], y: [B, Lq, H Dv], which needs q_num_heads H and
/// kv_num_heads G. G divides H: H / G heads of q in a row share one of k and v. Takes the first
/// three of ONNX-23's inputs and no softcap. The product is scaled, not q and k. bf16 contracts:
/// the probabilities are operands of a product, and rounded like the others.
struct Attention : OpOf<Attention> {
  static constexpr std::string_view kName = "Attention";
  static constexpr std::string_view kSummary = "y = softmax(scale q k') v per batch entry and head";
  static constexpr int kMultiplicands[] = {0, 1, 2};
  bool is_causal = false;         ///< query i sees keys 0 to i only
  std::int64_t q_num_heads = 0;   ///< with rank 3 only. With rank 4: 0 or the number in the shape
  std::int64_t kv_num_heads = 0;  ///< likewise
  float scale = 0;                ///< 0: 1 / sqrt(D)

  static void visit(auto& self, auto& visitor) {
    visitor("is_causal", self.is_causal);
    visitor("q_num_heads", self.q_num_heads);
    visitor("kv_num_heads", self.kv_num_heads);
    visitor("scale", self.scale);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// Where the rows of all heads lie in a tensor of either rank: elements from one to the next.
struct HeadStrides {
  std::int64_t batch = 0, head = 0, row = 0;
};

/// One Attention in numbers, whichever rank its tensors have.
struct AttentionGeometry {
  std::int64_t batch = 1, heads = 1, kv_heads = 1;
  std::int64_t queries = 1, keys = 1;
  std::int64_t head_size = 1, value_size = 1;  ///< D, Dv
  float scale = 1;
  HeadStrides q, k, v, y;

  /// Throws InvalidArgument for shapes that are no attention.
  static AttentionGeometry of(const Attention& op, Specs inputs);
};

}  // namespace triptych
