// Nearest and linear interpolation along any axes, and the gradient.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/axis_taps.h"
#include "core/ops/op.h"

namespace triptych {

/// y = x resampled to `sizes`, or by `scales` when `sizes` is empty (one per axis). mode: nearest,
/// linear (multilinear) or cubic (of four neighbours along each axis, Keys, 1981, with
/// `cubic_coeff_a`). coordinate_transformation_mode: half_pixel, pytorch_half_pixel, align_corners,
/// asymmetric or tf_half_pixel_for_nn. nearest_mode: round_prefer_floor, round_prefer_ceil, floor,
/// ceil. Coordinates beyond the edge read the edge. For cubic with exclude_outside they read
/// nothing, and the other weights are divided by their sum. f32, for nearest any dtype. Linear and
/// cubic are the sum of core/ops/axis_taps.h over the taps of every axis.
struct Resize : OpOf<Resize> {
  static constexpr std::string_view kName = "Resize";
  static constexpr std::string_view kSummary =
      "y = x resampled by nearest, linear or cubic interpolation";
  std::vector<float> scales;
  std::vector<std::int64_t> sizes;
  std::string mode = "nearest";
  std::string coordinate_transformation_mode = "half_pixel";
  std::string nearest_mode = "round_prefer_floor";
  float cubic_coeff_a = -0.75F;
  bool exclude_outside = false;

  static void visit(auto& self, auto& visitor) {
    visitor("scales", self.scales);
    visitor("sizes", self.sizes);
    visitor("mode", self.mode);
    visitor("coordinate_transformation_mode", self.coordinate_transformation_mode);
    visitor("nearest_mode", self.nearest_mode);
    visitor("cubic_coeff_a", self.cubic_coeff_a);
    visitor("exclude_outside", self.exclude_outside);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// For each axis of a nearest Resize the index of x that each index of y copies.
std::vector<Dims> nearest_sources(const Resize& op, const Shape& x);

/// For each axis the taps of linear and cubic: ascending, those of weight 0 left out.
std::vector<AxisTaps> resize_taps(const Resize& op, const Shape& x);

/// dx of Resize from dy: each dy added to the elements it was interpolated from, with their
/// weights, in row-major order, which is the sum of core/ops/axis_taps.h over the transposed taps.
/// f32.
struct ResizeGradient : OpOf<ResizeGradient> {
  static constexpr std::string_view kName = "ResizeGradient";
  static constexpr std::string_view kSummary = "dx[q] = sum over p of dy[p] weight(p, q)";
  std::vector<std::int64_t> input_shape;
  std::vector<float> scales;
  std::vector<std::int64_t> sizes;
  std::string mode = "nearest";
  std::string coordinate_transformation_mode = "half_pixel";
  std::string nearest_mode = "round_prefer_floor";
  float cubic_coeff_a = -0.75F;
  bool exclude_outside = false;

  static void visit(auto& self, auto& visitor) {
    visitor("input_shape", self.input_shape);
    visitor("scales", self.scales);
    visitor("sizes", self.sizes);
    visitor("mode", self.mode);
    visitor("coordinate_transformation_mode", self.coordinate_transformation_mode);
    visitor("nearest_mode", self.nearest_mode);
    visitor("cubic_coeff_a", self.cubic_coeff_a);
    visitor("exclude_outside", self.exclude_outside);
  }
  /// The Resize that this differentiates.
  Resize forward() const;
  /// dx as a map of dy.
  std::vector<AxisTaps> taps() const;
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

}  // namespace triptych
