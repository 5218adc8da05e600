// Elementwise choice.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// y = condition ? a : b, all three broadcast. condition: bool. a, b: the same dtype, any.
struct Where : OpOf<Where> {
  static constexpr std::string_view kName = "Where";
  static constexpr std::string_view kSummary = "y = condition ? a : b";

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

}  // namespace triptych
