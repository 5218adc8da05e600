// Convolution in one and two dimensions and the gradient of its weights. (The gradient of its input
// is a ConvTranspose, and the other way round.)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/conv_geometry.h"
#include "core/ops/op.h"

namespace triptych {

/// y[n, o, p] = bias[o] + sum over taps t and channels c of group(o): x[n, c, p * stride - pad + t
/// * dilation] w[o, c, t]. x: [N, C, (H,) W], w: [O, C / group, (kh,) kw], bias: optional [O]. f32.
/// bf16-exact: one fma chain, k runs over kernel row, kernel column, channel. Taps in the padding
/// are part of the chain as zeros. The bias is added after the chain.
struct Conv : OpOf<Conv>, WindowAttributes {
  static constexpr std::string_view kName = "Conv";
  static constexpr std::string_view kSummary =
      "y[n, o, p] = bias[o] + sum over c, t of x[n, c, p * stride - pad + t * dilation] w[o, c, t]";
  static constexpr int kMultiplicands[] = {0, 1};
  std::int64_t group = 1;
  std::string activation;  ///< "" or "relu", applied last. Set by fusion, not ONNX's

  static void visit(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("group", self.group);
    visitor("activation", self.activation);
  }
  /// The geometry for these operand shapes. Throws InvalidArgument when they do not fit.
  ConvGeometry geometry(const Shape& x, const Shape& w) const;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  bool differentiable() const override { return activation.empty(); }
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// dw[o, c, t] = sum over n, p of dy[n, o, p] x[n, c, p * stride - pad + t * dilation]: the
/// gradient of Conv's weight, and with x and dy swapped of ConvTranspose's. Inputs x: [N, C, (H,)
/// W] and dy: [N, O, (H',) W']. kernel_shape is required. dw: [O, C / group, (kh,) kw]. f32.
/// bf16-exact: k runs over image, row, column of dy.
struct ConvWeightGradient : OpOf<ConvWeightGradient>, WindowAttributes {
  static constexpr std::string_view kName = "ConvWeightGradient";
  static constexpr std::string_view kSummary =
      "dw[o, c, t] = sum over n, p of dy[n, o, p] x[n, c, p * stride - pad + t * dilation]";
  static constexpr int kMultiplicands[] = {0, 1};
  std::int64_t group = 1;

  static void visit(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("group", self.group);
  }
  ConvGeometry geometry(const Shape& x, const Shape& dy) const;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// Reference of the bias: y[n, c, ...] += bias[c].
void add_channel_bias(RefTensor& y, const RefTensor& bias);

/// The sum of x [N, C, ...] over all axes but 1: [C], the gradient of a value per channel.
ValueId channel_sum(OpEmitter& emitter, ValueId x);

}  // namespace triptych
