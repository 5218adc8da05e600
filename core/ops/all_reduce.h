// Sums over the ranks of a run: the node through which replicas of a graph exchange values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// y_i = scale * the sum of x_i over all ranks of the mesh axis, for any number of f32 inputs,
/// which travel as one message. Each rank's graph has the node; `order` is how the ranks' values
/// are added: "rank-ordered" ((0+1)+2)+3, "shard-tree" (0+1)+(2+3), or "ring". The reference is the
/// only rank of its axis.
struct AllReduce : OpOf<AllReduce> {
  static constexpr std::string_view kName = "AllReduce";
  static constexpr std::string_view kSummary = "y_i = scale * sum of x_i over all ranks";

  std::string axis = "dp";
  std::string order = "rank-ordered";
  float scale = 1;

  static void visit(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("order", self.order);
    visitor("scale", self.scale);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  bool collective() const override { return true; }
};

}  // namespace triptych
