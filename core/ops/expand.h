// Explicit broadcasting. Any dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"
#include "core/ops/strided_view.h"

namespace triptych {

/// y = x broadcast with `shape` (both ways, as in ONNX).
struct Expand : OpOf<Expand> {
  static constexpr std::string_view kName = "Expand";
  static constexpr std::string_view kSummary = "y = x broadcast with `shape`";
  std::vector<std::int64_t> shape;

  static void visit(auto& self, auto& visitor) { visitor("shape", self.shape); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;

  /// y as a view of x.
  StridedView view_of(const StridedView& x) const;
};

}  // namespace triptych
