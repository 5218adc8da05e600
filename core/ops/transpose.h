// Permutation of axes. Any dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"
#include "core/ops/strided_view.h"

namespace triptych {

/// y[i_perm[0], i_perm[1], ...] = x[i_0, i_1, ...]. Y's axis a is x's axis perm[a]. An empty perm
/// reverses the axes.
struct Transpose : OpOf<Transpose> {
  static constexpr std::string_view kName = "Transpose";
  static constexpr std::string_view kSummary = "y's axis a is x's axis perm[a]";
  std::vector<std::int64_t> perm;

  static void visit(auto& self, auto& visitor) { visitor("perm", self.perm); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;

  /// y as a view of x.
  StridedView view_of(const StridedView& x) const;
};

}  // namespace triptych
