// Between float32 and integers, symmetrically: real value = scale * integer, zero point 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"
#include "core/ops/strided_view.h"

namespace triptych {

/// y[i] = saturate(round(x[i] / y_scale)), quantize_to_i8 of core/base/quantized_math.h: one IEEE
/// division, ties to even, cut to [-128, 127], NaN gives 0. x: f32. y_scale: f32 scalar, positive
/// and normal (the result for others is unspecified). y: i8. ONNX's operator with an i8 zero point
/// of 0.
struct QuantizeLinear : OpOf<QuantizeLinear> {
  static constexpr std::string_view kName = "QuantizeLinear";
  static constexpr std::string_view kSummary =
      "y = x / y_scale to the nearest integer, ties to even, cut to [-128, 127]";
  static constexpr ErrorBound kErrorBound = kExact;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

/// y[i] = float32(x[i]) * x_scale: a conversion (nearest, ties to even) and one IEEE
/// multiplication. x: i8 or i32. x_scale: f32 scalar, or [C] for one scale per index of `axis`. y:
/// f32. Scales are positive and normal. ONNX's operator without a zero point.
struct DequantizeLinear : OpOf<DequantizeLinear> {
  static constexpr std::string_view kName = "DequantizeLinear";
  static constexpr std::string_view kSummary =
      "y = x x_scale, x_scale a scalar or one number per index of `axis`";
  static constexpr ErrorBound kErrorBound = kExact;
  std::int64_t axis = 1;

  static void visit(auto& self, auto& visitor) { visitor("axis", self.axis); }
  /// Strides with which the scales are read as if they had the shape of x.
  Dims scale_strides(const Shape& x, const StridedView& scale) const;
  std::vector<TensorSpec> infer(Specs inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

}  // namespace triptych
