// Convolution and transposed convolution of the int8 contract: integers only, and therefore the
// same bits on every backend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/conv_geometry.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/op.h"

namespace triptych {

/// Conv on integers. w: [O, C / group, (kh,) kw]. With 2 inputs it is ONNX's ConvInteger.
///
/// Inputs x i8 [N, C, (H,) W], w i8, then optionally bias i32 [O], then optionally both multiplier
/// i32 [O] and shift i32 [O]. With s[n, o, p] = bias[o] + sum of x w, modulo 2^32 (wrapping int32,
/// so the order does not matter):
///   2 or 3 inputs:  y i32 = s, with activation "relu" max(s, 0)
///   5 inputs:       y i8  = saturate(max(requantize(s, multiplier[o], shift[o]), 0)), the max with
///                   activation "relu" only, where
///                   requantize(s, m, h) = (int64(s) * m + (1 << (h - 1))) >> h, h cut to [1, 62],
///                   saturate(v) = min(max(v, -128), 127)
/// (core/base/quantized_math.h). Zero points are 0, so the padding is 0. A sum of K products and a
/// bias does not wrap while 2^14 K + |bias| < 2^31.
struct QuantizedConv : OpOf<QuantizedConv>, WindowAttributes {
  static constexpr std::string_view kName = "QuantizedConv";
  static constexpr std::string_view kSummary =
      "Conv of i8 operands: s = bias + sum of x w in i32; y = s, or with multiplier and shift "
      "y = saturate((s multiplier + 2^(shift - 1)) >> shift)";
  static constexpr ErrorBound kErrorBound = kExact;
  std::int64_t group = 1;
  std::string activation;  ///< "" or "relu"

  static void visit(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("group", self.group);
    visitor("activation", self.activation);
  }
  /// As Conv::geometry.
  ConvGeometry geometry(const Shape& x, const Shape& w) const;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

/// ConvTranspose on integers. w: [C, O / group, (kh,) kw]. Inputs and formula as for QuantizedConv.
struct QuantizedConvTranspose : OpOf<QuantizedConvTranspose>, ConvTransposeAttributes {
  static constexpr std::string_view kName = "QuantizedConvTranspose";
  static constexpr std::string_view kSummary =
      "ConvTranspose of i8 operands: s = bias + sum of x w in i32; y = s, or with multiplier and "
      "shift y = saturate((s multiplier + 2^(shift - 1)) >> shift)";
  static constexpr ErrorBound kErrorBound = kExact;
  std::string activation;  ///< "" or "relu"

  static void visit(auto& self, auto& visitor) {
    visit_transpose(self, visitor);
    visitor("activation", self.activation);
  }
  /// As ConvTranspose::geometry.
  ConvGeometry geometry(const Shape& x, const Shape& w) const { return geometry_for(kName, x, w); }

  std::vector<TensorSpec> infer(Specs inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

}  // namespace triptych
