// Strided sections and the gradient that puts them back. Any dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"
#include "core/ops/strided_view.h"

namespace triptych {

/// y = x[starts : ends : steps] along `axes` with NumPy's and ONNX's clamping rules. Steps may be
/// negative, not 0. Empty `axes` means the first ones, empty `steps` all 1.
struct Slice : OpOf<Slice> {
  static constexpr std::string_view kName = "Slice";
  static constexpr std::string_view kSummary = "y = x[starts : ends : steps] along `axes`";
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  std::vector<std::int64_t> axes;
  std::vector<std::int64_t> steps;

  static void visit(auto& self, auto& visitor) {
    visitor("starts", self.starts);
    visitor("ends", self.ends);
    visitor("axes", self.axes);
    visitor("steps", self.steps);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;

  /// y as a view of x.
  StridedView view_of(const StridedView& x) const;
};

/// A slice resolved against a shape: per axis of x the first index, the step, and the output's
/// shape.
struct SliceGeometry {
  std::vector<std::int64_t> starts, steps;
  Shape output;

  static SliceGeometry of(const Slice& op, const Shape& x);
};

/// dx = zeros of `input_shape` with dy written at the positions that Slice reads. Input dy. f32.
struct SliceGradient : OpOf<SliceGradient> {
  static constexpr std::string_view kName = "SliceGradient";
  static constexpr std::string_view kSummary = "dx = 0 but for dx[starts : ends : steps] = dy";
  std::vector<std::int64_t> input_shape;
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  std::vector<std::int64_t> axes;
  std::vector<std::int64_t> steps;

  static void visit(auto& self, auto& visitor) {
    visitor("input_shape", self.input_shape);
    visitor("starts", self.starts);
    visitor("ends", self.ends);
    visitor("axes", self.axes);
    visitor("steps", self.steps);
  }
  /// The Slice that this differentiates.
  Slice forward() const;
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

}  // namespace triptych
