// The family of reductions, written once, and ArgMax.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

enum class ReduceKind { Sum, Mean, Max, Min };

/// Every kind, in the order of the enum.
std::span<const ReduceKind> all_reduce_kinds();

/// y = reduction of x over `axes` (all axes when empty, negative ones count from the end). With
/// keepdims the axes stay with size 1. f32. Sum, Max and Min also i32 and i64 (sums wrap). Sums run
/// in the stated tree (core/base/reduction.h): the reduced elements of one output, in row-major
/// order, are one row. A Mean is that sum divided by the count. An empty reduction is 0 for Sum and
/// refused otherwise.
struct Reduce : OpFamily<Reduce> {
  ReduceKind kind = ReduceKind::Sum;
  std::vector<std::int64_t> axes;
  bool keepdims = true;

  Reduce() = default;
  explicit Reduce(ReduceKind reduce_kind, std::vector<std::int64_t> reduced_axes = {},
                  bool keep = true)
      : kind(reduce_kind), axes(std::move(reduced_axes)), keepdims(keep) {}

  std::string_view name() const override;  ///< ReduceSum, ReduceMean, ...
  std::string_view summary() const override;
  static void visit(auto& self, auto& visitor) {
    visitor("axes", self.axes);
    visitor("keepdims", self.keepdims);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// A reduction resolved: x as outer x count x inner when the reduced axes are contiguous, else
/// per-axis flags for the general case.
struct ReduceGeometry {
  std::vector<bool> reduced;          ///< per axis of x
  bool contiguous = true;             ///< the reduced axes are neighbours (sizes 1 aside)
  std::int64_t count = 1;             ///< elements of x per element of y
  std::int64_t outer = 1, inner = 1;  ///< when contiguous

  static ReduceGeometry of(const Reduce& op, const Shape& x);
};

/// y = index of the first (or with select_last_index the last) largest element along `axis`, i64.
/// x: any dtype except bool.
struct ArgMax : OpOf<ArgMax> {
  static constexpr std::string_view kName = "ArgMax";
  static constexpr std::string_view kSummary = "y = index of the largest element along `axis`";
  std::int64_t axis = 0;
  bool keepdims = true;
  bool select_last_index = false;

  static void visit(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("keepdims", self.keepdims);
    visitor("select_last_index", self.select_last_index);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

}  // namespace triptych
