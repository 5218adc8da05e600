// Operators that give the same bytes another shape. All are views: no data moves when the plan can
// alias input and output. Any dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// y = x under `shape`: 0 keeps the size of x at that position (unless allowzero), one -1 is
/// inferred.
struct Reshape : OpOf<Reshape> {
  static constexpr std::string_view kName = "Reshape";
  static constexpr std::string_view kSummary = "y = x under another shape";
  std::vector<std::int64_t> shape;
  bool allowzero = false;

  static void visit(auto& self, auto& visitor) {
    visitor("shape", self.shape);
    visitor("allowzero", self.allowzero);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool view() const override { return true; }
};

/// y = x as [product of axes before `axis`, product of the rest].
struct Flatten : OpOf<Flatten> {
  static constexpr std::string_view kName = "Flatten";
  static constexpr std::string_view kSummary = "y = x as a matrix, split at `axis`";
  std::int64_t axis = 1;

  static void visit(auto& self, auto& visitor) { visitor("axis", self.axis); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool view() const override { return true; }
};

/// y = x without the given axes of size 1 (all of them when `axes` is empty).
struct Squeeze : OpOf<Squeeze> {
  static constexpr std::string_view kName = "Squeeze";
  static constexpr std::string_view kSummary = "y = x without axes of size 1";
  std::vector<std::int64_t> axes;

  static void visit(auto& self, auto& visitor) { visitor("axes", self.axes); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool view() const override { return true; }
};

/// y = x with axes of size 1 inserted. `axes` count in the output.
struct Unsqueeze : OpOf<Unsqueeze> {
  static constexpr std::string_view kName = "Unsqueeze";
  static constexpr std::string_view kSummary = "y = x with axes of size 1 inserted";
  std::vector<std::int64_t> axes;

  static void visit(auto& self, auto& visitor) { visitor("axes", self.axes); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool view() const override { return true; }
};

/// y = x.
struct Identity : OpOf<Identity> {
  static constexpr std::string_view kName = "Identity";
  static constexpr std::string_view kSummary = "y = x";

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool view() const override { return true; }
};

}  // namespace triptych
