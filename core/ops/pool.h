// Pooling in one and two dimensions and its gradients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/conv_geometry.h"
#include "core/ops/op.h"

namespace triptych {

/// The attributes of a pooling operator with windows.
struct PoolAttributes : WindowAttributes {
  bool ceil_mode = false;

  static void visit_pool(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("ceil_mode", self.ceil_mode);
  }
  bool operator==(const PoolAttributes&) const = default;
};

/// The window of the pooling operator `op` over x. Throws InvalidArgument "[op] ..." where
/// resolve_window does, and for windows without any element of x.
Window pool_window(std::string_view op, const PoolAttributes& attributes, const Shape& x);

/// A pooling operator whose operand 0 is x.
template <class Derived>
struct PoolOf : OpOf<Derived>, PoolAttributes {
  static void visit(auto& self, auto& visitor) { visit_pool(self, visitor); }
  Window window(const Shape& x) const { return pool_window(Derived::kName, *this, x); }
};

/// The gradient of one that does not read x. `input_shape` is x's shape.
template <class Derived>
struct PoolGradientOf : OpOf<Derived>, PoolAttributes {
  std::vector<std::int64_t> input_shape;

  static void visit(auto& self, auto& visitor) {
    visit_pool(self, visitor);
    visitor("input_shape", self.input_shape);
  }
  Window window() const { return pool_window(Derived::kName, *this, Shape(input_shape)); }
};

/// y[n, c, p] = max over the window of x, or NaN if any is NaN. Padding never wins. x: [N, C, (H,)
/// W]. Any dtype but bool.
struct MaxPool : PoolOf<MaxPool> {
  static constexpr std::string_view kName = "MaxPool";
  static constexpr std::string_view kSummary =
      "y[n, c, p] = max over the window at p of x[n, c, .], or NaN if any is NaN";

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

/// dx of MaxPool from (x, dy): each dy goes to the first largest element (row-major) of its window,
/// or to its last NaN, as in PyTorch. Overlapping windows add in ascending output order. f32.
struct MaxPoolGradient : PoolOf<MaxPoolGradient> {
  static constexpr std::string_view kName = "MaxPoolGradient";
  static constexpr std::string_view kSummary =
      "dx[n, c, argmax of the window at p] += dy[n, c, p], the first of equal elements or the last "
      "NaN";

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// MaxPool of f32 with a second output, index: for each element of y its tap, the number of its
/// element of x in the window (row-major), by MaxPoolGradient's rule. u8, so windows have at most
/// kMostTaps. The plan replaces a MaxPool that has a gradient by it (index_max_pools).
struct MaxPoolWithIndex : PoolOf<MaxPoolWithIndex> {
  static constexpr std::string_view kName = "MaxPoolWithIndex";
  static constexpr std::string_view kSummary =
      "y as MaxPool, index[n, c, p] = tap of the window at p that holds y[n, c, p]";
  static constexpr std::int64_t kMostTaps = 256;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

/// dx of MaxPoolWithIndex from (index, dy), with the bits of MaxPoolGradient. With a third input,
/// another gradient of x, which is added last: the sum of both. f32.
struct MaxPoolIndexGradient : PoolGradientOf<MaxPoolIndexGradient> {
  static constexpr std::string_view kName = "MaxPoolIndexGradient";
  static constexpr std::string_view kSummary =
      "dx[n, c, tap index[n, c, p] of the window at p] += dy[n, c, p], plus another gradient";

  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// y[n, c, p] = mean over the window of x. Padding counts only with count_include_pad. f32.
struct AveragePool : PoolOf<AveragePool> {
  static constexpr std::string_view kName = "AveragePool";
  static constexpr std::string_view kSummary =
      "y[n, c, p] = mean over the window at p of x[n, c, .]";
  bool count_include_pad = false;

  static void visit(auto& self, auto& visitor) {
    visit_pool(self, visitor);
    visitor("count_include_pad", self.count_include_pad);
  }

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// How many positions of the window at output (row, column) an average divides by.
std::int64_t average_pool_divisor(const Window& window, bool count_include_pad, std::int64_t row,
                                  std::int64_t column);

/// dx of AveragePool from dy. f32.
struct AveragePoolGradient : PoolGradientOf<AveragePoolGradient> {
  static constexpr std::string_view kName = "AveragePoolGradient";
  static constexpr std::string_view kSummary =
      "dx[n, c, q] = sum over windows p that cover q of dy[n, c, p] / divisor(p)";
  bool count_include_pad = false;

  static void visit(auto& self, auto& visitor) {
    visit_pool(self, visitor);
    visitor("count_include_pad", self.count_include_pad);
    visitor("input_shape", self.input_shape);
  }

  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// y[n, c, 1, 1] = mean of x[n, c, ., .], expands to ReduceMean. f32.
struct GlobalAveragePool : OpOf<GlobalAveragePool> {
  static constexpr std::string_view kName = "GlobalAveragePool";
  static constexpr std::string_view kSummary = "y[n, c, 1, ...] = mean of x[n, c, ...]";

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

}  // namespace triptych
