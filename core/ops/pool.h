// Pooling in one and two dimensions and its gradients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/conv_geometry.h"
#include "core/ops/op.h"

namespace triptych {

/// y[n, c, p] = max over the window of x, or NaN if any is NaN. Padding never wins. x: [N, C, (H,)
/// W]. Any dtype but bool.
struct MaxPool : OpOf<MaxPool>, WindowAttributes {
  static constexpr std::string_view kName = "MaxPool";
  static constexpr std::string_view kSummary =
      "y[n, c, p] = max over the window at p of x[n, c, .], or NaN if any is NaN";
  bool ceil_mode = false;

  static void visit(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("ceil_mode", self.ceil_mode);
  }
  Window window(const Shape& x) const;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

/// dx of MaxPool from (x, dy): each dy goes to the first largest element (row-major) of its window,
/// or to its last NaN, as in PyTorch. Overlapping windows add in ascending output order. f32.
struct MaxPoolGradient : OpOf<MaxPoolGradient>, WindowAttributes {
  static constexpr std::string_view kName = "MaxPoolGradient";
  static constexpr std::string_view kSummary =
      "dx[n, c, argmax of the window at p] += dy[n, c, p], the first of equal elements or the last "
      "NaN";
  bool ceil_mode = false;

  static void visit(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("ceil_mode", self.ceil_mode);
  }
  Window window(const Shape& x) const;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<Sharding> shardings(Specs inputs, Specs outputs, std::int64_t parts) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// MaxPool of f32 with a second output, index: for each element of y its tap, the number of its
/// element of x in the window (row-major), by MaxPoolGradient's rule. u8, so windows have at most
/// kMostTaps. The plan replaces a MaxPool that has a gradient by it (index_max_pools).
struct MaxPoolWithIndex : OpOf<MaxPoolWithIndex>, WindowAttributes {
  static constexpr std::string_view kName = "MaxPoolWithIndex";
  static constexpr std::string_view kSummary =
      "y as MaxPool, index[n, c, p] = tap of the window at p that holds y[n, c, p]";
  static constexpr std::int64_t kMostTaps = 256;
  bool ceil_mode = false;

  static void visit(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("ceil_mode", self.ceil_mode);
  }
  Window window(const Shape& x) const;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

/// dx of MaxPoolWithIndex from (index, dy), with the bits of MaxPoolGradient. `input_shape` is x's
/// shape. f32.
struct MaxPoolIndexGradient : OpOf<MaxPoolIndexGradient>, WindowAttributes {
  static constexpr std::string_view kName = "MaxPoolIndexGradient";
  static constexpr std::string_view kSummary =
      "dx[n, c, tap index[n, c, p] of the window at p] += dy[n, c, p]";
  bool ceil_mode = false;
  std::vector<std::int64_t> input_shape;

  static void visit(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("ceil_mode", self.ceil_mode);
    visitor("input_shape", self.input_shape);
  }
  Window window() const;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// y[n, c, p] = mean over the window of x. Padding counts only with count_include_pad. f32.
struct AveragePool : OpOf<AveragePool>, WindowAttributes {
  static constexpr std::string_view kName = "AveragePool";
  static constexpr std::string_view kSummary =
      "y[n, c, p] = mean over the window at p of x[n, c, .]";
  bool ceil_mode = false;
  bool count_include_pad = false;

  static void visit(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("ceil_mode", self.ceil_mode);
    visitor("count_include_pad", self.count_include_pad);
  }
  Window window(const Shape& x) const;

  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  double flops(Specs inputs, Specs outputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

/// How many positions of the window at output (row, column) an average divides by.
std::int64_t average_pool_divisor(const Window& window, bool count_include_pad, std::int64_t row,
                                  std::int64_t column);

/// dx of AveragePool from dy. `input_shape` is x's shape. f32.
struct AveragePoolGradient : OpOf<AveragePoolGradient>, WindowAttributes {
  static constexpr std::string_view kName = "AveragePoolGradient";
  static constexpr std::string_view kSummary =
      "dx[n, c, q] = sum over windows p that cover q of dy[n, c, p] / divisor(p)";
  bool ceil_mode = false;
  bool count_include_pad = false;
  std::vector<std::int64_t> input_shape;

  static void visit(auto& self, auto& visitor) {
    visit_window(self, visitor);
    visitor("ceil_mode", self.ceil_mode);
    visitor("count_include_pad", self.count_include_pad);
    visitor("input_shape", self.input_shape);
  }
  Window window() const;

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
