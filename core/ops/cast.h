// Conversion between dtypes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// y = x as dtype `to` (a name: "f32", "i64", ...). To floats: nearest even. Float to integer:
/// truncated and saturated, NaN gives 0. To bool: x != 0. Integer to narrower integer: wraps.
struct Cast : OpOf<Cast> {
  static constexpr std::string_view kName = "Cast";
  static constexpr std::string_view kSummary = "y = x converted to dtype `to`";
  std::string to = "f32";

  static void visit(auto& self, auto& visitor) { visitor("to", self.to); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

}  // namespace triptych
