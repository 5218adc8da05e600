// Scaled dot-product attention, defined by matrix products and Softmax.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// Attributes of attention and of its gradient.
struct AttentionAttributes {
  bool is_causal = false;         ///< query i sees keys 0 to i only
  std::int64_t q_num_heads = 0;   ///< with rank 3 only. With rank 4: 0 or the number in the shape
  std::int64_t kv_num_heads = 0;  ///< likewise
  float scale = 0;                ///< 0: 1 / sqrt(D)

  bool operator==(const AttentionAttributes&) const = default;
  static void visit_attention(auto& self, auto& visitor) {
    visitor("is_causal", self.is_causal);
    visitor("q_num_heads", self.q_num_heads);
    visitor("kv_num_heads", self.kv_num_heads);
    visitor("scale", self.scale);
  }
};

/// y = softmax(scale q k') v, per batch entry and head, with the softmax along the keys. Vaswani et
/// al., "Attention is all you need", 2017. f32.
/// q: [B, H, Lq, D], k: [B, G, Lk, D], v: [B, G, Lk, Dv], y: [B, H, Lq, Dv]. With merged heads q:
/// [B, Lq, H D], k: [B, Lk, G D], v: [B, Lk, G Dv], y: [B, Lq, H Dv], which needs q_num_heads H and
/// kv_num_heads G. G divides H: H / G heads of q in a row share one of k and v. Takes the first
/// three of ONNX-23's inputs and no softcap. The product is scaled, not q and k. bf16 contracts:
/// the probabilities are operands of a product, and rounded like the others.
struct Attention : OpOf<Attention>, AttentionAttributes {
  static constexpr std::string_view kName = "Attention";
  static constexpr std::string_view kSummary = "y = softmax(scale q k') v per batch entry and head";
  static constexpr int kMultiplicands[] = {0, 1, 2};

  static void visit(auto& self, auto& visitor) { visit_attention(self, visitor); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  /// One AttentionGradient. It does not need the expansion.
  std::vector<ValueId> gradient(const GradientContext& context) const override;
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
  bool is_causal = false;
  float scale = 1;
  HeadStrides q, k, v, y;

  /// The geometry for q, k and v. Throws InvalidArgument for shapes that are no attention.
  static AttentionGeometry of(const AttentionAttributes& op, Specs inputs);
  /// Keys that query `i` sees.
  std::int64_t seen(std::int64_t i) const { return is_causal && i < keys ? i + 1 : keys; }
  /// Pairs of a query and a key that it sees, of all heads.
  double pairs() const;
  TensorSpec y_spec(std::int64_t rank) const;
};

/// The values of the expansion up to the probabilities. Heads have an axis of their own, and groups
/// of them where k and v have fewer. `scale` is a constant.
struct AttentionParts {
  ValueId q, k, v, scale, scores, probabilities;
};
AttentionParts emit_probabilities(OpEmitter& emitter, const AttentionGeometry& g, Values inputs);
/// x of rank 3 as [B, heads, rows, size], and the way back.
ValueId split_heads(OpEmitter& emitter, ValueId x, std::int64_t heads);
ValueId merge_heads(OpEmitter& emitter, ValueId x);
/// x [B, heads, rows, size] as [B, groups, heads / groups, rows, size], where k and v have fewer
/// heads than q.
ValueId group_heads(OpEmitter& emitter, ValueId x, const AttentionGeometry& g);

/// The probabilities of query `i` of a head in float64, for references: q and the rows of k.
std::vector<double> attention_probabilities(const AttentionGeometry& g, std::int64_t i,
                                            const double* q, const double* k);
/// Element 0 of a row.
inline std::size_t element_of(const HeadStrides& strides, std::int64_t batch, std::int64_t head,
                              std::int64_t row) {
  return static_cast<std::size_t>(batch * strides.batch + head * strides.head + row * strides.row);
}

}  // namespace triptych
