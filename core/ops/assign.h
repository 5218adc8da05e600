// Writing a state as a whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// state' = value, of the same dtype and shape. The state is updated in place.
struct Assign : OpOf<Assign> {
  static constexpr std::string_view kName = "Assign";
  static constexpr std::string_view kSummary = "state' = value";

  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  std::vector<std::pair<int, int>> updates(int) const override { return {{0, 0}}; }
};

}  // namespace triptych
