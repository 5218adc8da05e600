// Padding and its gradient.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/axis_taps.h"
#include "core/ops/op.h"
#include "core/ops/strided_view.h"

namespace triptych {

/// y = x with pads[a] elements before and pads[rank + a] after axis a. Negative pads crop. mode:
/// constant (`value`), reflect (without the edge, to and fro where the pad is longer than x), edge.
/// Any dtype. `value` is converted to x's.
struct Pad : OpOf<Pad> {
  static constexpr std::string_view kName = "Pad";
  static constexpr std::string_view kSummary = "y = x with elements added around it";
  std::vector<std::int64_t> pads;
  std::string mode = "constant";
  float value = 0;

  static void visit(auto& self, auto& visitor) {
    visitor("pads", self.pads);
    visitor("mode", self.mode);
    visitor("value", self.value);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;

  /// `value` as a rank-0 tensor of this dtype.
  Tensor value_as(DType dtype) const;
};

/// For each axis of y and each index along it the index of x that it copies, -1 where it takes the
/// constant.
std::vector<Dims> pad_sources(const Pad& op, const Shape& x);

/// The part of y that copies x, seen in x and in y (constant mode).
struct PadInterior {
  StridedView in_x, in_y;
};
PadInterior pad_interior(const Pad& op, const StridedView& x, const StridedView& y);

/// dx of Pad from dy: each dy added to the element it was copied from, in row-major order. f32.
struct PadGradient : OpOf<PadGradient> {
  static constexpr std::string_view kName = "PadGradient";
  static constexpr std::string_view kSummary =
      "dx[q] = sum of dy over the positions that copy x[q]";
  std::vector<std::int64_t> input_shape;
  std::vector<std::int64_t> pads;
  std::string mode = "constant";

  static void visit(auto& self, auto& visitor) {
    visitor("input_shape", self.input_shape);
    visitor("pads", self.pads);
    visitor("mode", self.mode);
  }
  /// The Pad that this differentiates.
  Pad forward() const;
  /// dx as a map of dy.
  std::vector<AxisTaps> taps() const;
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

}  // namespace triptych
