// Transposed convolution in one and two dimensions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/conv_geometry.h"
#include "core/ops/op.h"

namespace triptych {

/// The attributes of a transposed convolution, for floating-point and integer arithmetic.
struct ConvTransposeAttributes : WindowAttributes {
  std::int64_t group = 1;
  std::vector<std::int64_t> output_padding;
  std::vector<std::int64_t> output_shape;

  static void visit_transpose(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("group", self.group);
    visitor("output_padding", self.output_padding);
    visitor("output_shape", self.output_shape);
  }
  /// The geometry of the convolution with this operator as input gradient: its x is our y, its y
  /// our x, its in_channels our O. Throws InvalidArgument "[op] ..." when the operands do not fit.
  ConvGeometry geometry_for(std::string_view op, const Shape& x, const Shape& w) const;
};

/// y[n, o, q] = bias[o] + sum over c of group(o) and taps t with q = p * stride - pad + t *
/// dilation of x[n, c, p] w[c, o, t]. x: [N, C, (H,) W], w: [C, O / group, (kh,) kw], bias:
/// optional [O]. f32. Output size: stride (in - 1) + output_padding + (kernel - 1) dilation + 1 -
/// pads, or output_shape. bf16-exact: one fma chain per output. k runs over kernel row, kernel
/// column, channel, over the taps t with q + pad - t * dilation a multiple of the stride. Where
/// those meet no input they are part of the chain as zeros, as in Conv. The bias is added after it.
struct ConvTranspose : OpOf<ConvTranspose>, ConvTransposeAttributes {
  static constexpr std::string_view kName = "ConvTranspose";
  static constexpr std::string_view kSummary =
      "y[n, o, p * stride - pad + t * dilation] += x[n, c, p] w[c, o, t]; y += bias";
  static constexpr int kMultiplicands[] = {0, 1};

  static void visit(auto& self, auto& visitor) { visit_transpose(self, visitor); }
  ConvGeometry geometry(const Shape& x, const Shape& w) const { return geometry_for(kName, x, w); }

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

}  // namespace triptych
