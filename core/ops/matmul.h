// Matrix products: MatMul, the primitive, and Gemm, defined by it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// y = op(a) op(b) over the last two axes, and leading axes broadcast. a: [..., M, K], b: [..., K,
/// N], y: [..., M, N]. A rank-1 operand is a row (a) or a column (b) as in numpy.matmul. The
/// transpose flags swap an operand's last two axes (rank >= 2) and are not ONNX's. f32 (both).
/// bf16-exact: k ascending.
struct MatMul : OpOf<MatMul> {
  static constexpr std::string_view kName = "MatMul";
  static constexpr std::string_view kSummary =
      "y[..., m, n] = sum over k of a[..., m, k] b[..., k, n]";
  static constexpr int kMultiplicands[] = {0, 1};
  bool transpose_a = false;
  bool transpose_b = false;

  static void visit(auto& self, auto& visitor) {
    visitor("transpose_a", self.transpose_a);
    visitor("transpose_b", self.transpose_b);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// One MatMul as M, N, K per batch entry, rank-1 operands and transposes resolved. Batch entry i of
/// a starts at element batch_a[i], of b at batch_b[i] (broadcast axes repeat).
struct MatMulGeometry {
  std::int64_t m = 1, n = 1, k = 1;
  std::vector<std::int64_t> batch_a, batch_b;

  static MatMulGeometry of(const MatMul& op, const TensorSpec& a, const TensorSpec& b);
  /// The same. A stack of matrices that all go through one b is one tall matrix.
  static MatMulGeometry merged(const MatMul& op, const TensorSpec& a, const TensorSpec& b);
};

/// y = alpha op(a) op(b) + beta c. a: [M, K] ([K, M] with transA), b: [K, N] ([N, K] with transB),
/// c: optional, broadcasts to [M, N]. f32.
struct Gemm : OpOf<Gemm> {
  static constexpr std::string_view kName = "Gemm";
  static constexpr std::string_view kSummary = "y = alpha a b + beta c";
  static constexpr int kMultiplicands[] = {0, 1};
  float alpha = 1;
  float beta = 1;
  bool transA = false;
  bool transB = false;

  static void visit(auto& self, auto& visitor) {
    visitor("alpha", self.alpha);
    visitor("beta", self.beta);
    visitor("transA", self.transA);
    visitor("transB", self.transB);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

}  // namespace triptych
