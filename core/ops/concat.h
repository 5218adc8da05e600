// Joining and cutting along one axis. Any dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"
#include "core/ops/strided_view.h"

namespace triptych {

/// y = the inputs (1 or more, equal except along `axis`) one after another along `axis`.
struct Concat : OpOf<Concat> {
  static constexpr std::string_view kName = "Concat";
  static constexpr std::string_view kSummary = "y = the inputs one after another along `axis`";
  std::int64_t axis = 0;

  static void visit(auto& self, auto& visitor) { visitor("axis", self.axis); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;

  /// For each input its place in y.
  std::vector<StridedView> views_in(const StridedView& y, Specs inputs) const;
};

/// Outputs: consecutive pieces of x along `axis`, of the sizes `split`, or of `num_outputs` equal
/// sizes (the last one smaller) when `split` is empty. Expands to Slice.
struct Split : OpOf<Split> {
  static constexpr std::string_view kName = "Split";
  static constexpr std::string_view kSummary = "outputs = consecutive pieces of x along `axis`";
  std::int64_t axis = 0;
  std::vector<std::int64_t> split;
  std::int64_t num_outputs = 0;

  static void visit(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("split", self.split);
    visitor("num_outputs", self.num_outputs);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

}  // namespace triptych
