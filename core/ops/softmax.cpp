// SPDX-License-Identifier: Apache-2.0
#include "core/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/reduction.h"
#include "core/ops/axes.h"
#include "core/ops/elementwise.h"
#include "core/ops/formula.h"

namespace triptych {
namespace {

std::vector<TensorSpec> infer_along(std::string_view op, Specs inputs, std::int64_t axis) {
  require_inputs(op, inputs, 1, 1);
  require_dtype(op, inputs, 0, DType::F32);
  resolve_axis(op, axis, inputs[0].shape.rank());
  return {inputs[0]};
}

/// `y` = log softmax of `x` along `axis`.
void log_softmax(const Shape& shape, std::int64_t axis, std::span<const double> x,
                 std::span<double> y) {
  axis = normalize_axis(axis, shape.rank());
  const auto count = shape[axis], inner = shape.elements_between(axis + 1, shape.rank());
  const auto lines = count == 0 ? 0 : shape.elements() / count;
  for (std::int64_t line = 0; line < lines; ++line) {
    const auto start = line / inner * count * inner + line % inner;
    const auto at = [&](std::int64_t c) { return static_cast<std::size_t>(start + c * inner); };
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t c = 0; c < count; ++c) largest = std::max(largest, x[at(c)]);
    double sum = 0;
    for (std::int64_t c = 0; c < count; ++c) sum += std::exp(x[at(c)] - largest);
    for (std::int64_t c = 0; c < count; ++c) y[at(c)] = x[at(c)] - largest - std::log(sum);
  }
}

double depth_along(Specs inputs, std::int64_t axis) {
  return static_cast<double>(reduction_depth(inputs[0].shape.dim(axis)));
}

/// Maximum, difference, exp, sum, and a division or a difference per element.
double line_flops(Specs inputs) { return 5 * static_cast<double>(inputs[0].shape.elements()); }

}  // namespace

std::vector<TensorSpec> Softmax::infer(Specs inputs) const {
  return infer_along(kName, inputs, axis);
}

std::vector<ValueId> Softmax::gradient(const GradientContext& context) const {
  const auto y = context.outputs[0], dy = context.output_gradients[0];
  if (!context.wanted[0] || !dy.valid()) return {ValueId{}};
  const Formula f(context.emitter);
  return {f.mul(y, f.sub(dy, f.sum(f.mul(dy, y), {axis})))};
}

double Softmax::flops(Specs inputs, Specs) const { return line_flops(inputs); }

void Softmax::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  auto& y = outputs[0].values;
  log_softmax(inputs[0].spec.shape, axis, inputs[0].values, y);
  for (auto& value : y) value = std::exp(value);
}

// Rounding x - max shifts exp by |x - max| units, at most 0.37 units of the largest y: the
// absolute part. The rest is relative, for all terms of the sum are positive.
ErrorBound Softmax::error_bound(Specs inputs) const {
  return {.terms = 0, .ulps = 2 * depth_along(inputs, axis) + 16, .absolute = 0x1p-24};
}

std::vector<TensorSpec> LogSoftmax::infer(Specs inputs) const {
  return infer_along(kName, inputs, axis);
}

std::vector<ValueId> LogSoftmax::gradient(const GradientContext& context) const {
  const auto y = context.outputs[0], dy = context.output_gradients[0];
  if (!context.wanted[0] || !dy.valid()) return {ValueId{}};
  const Formula f(context.emitter);
  return {f.sub(dy, f.mul(f.apply(UnaryKind::Exp, y), f.sum(dy, {axis})))};
}

double LogSoftmax::flops(Specs inputs, Specs) const { return line_flops(inputs); }

void LogSoftmax::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  log_softmax(inputs[0].spec.shape, axis, inputs[0].values, outputs[0].values);
}

// A relative error of the sum is an absolute one of its logarithm.
ErrorBound LogSoftmax::error_bound(Specs inputs) const {
  const auto depth = depth_along(inputs, axis);
  return {.terms = 0, .ulps = 8, .absolute = 0x1p-24 * (2 * depth + 16)};
}

void add_softmax_ops(OpList& list) {
  list.push_back(make_op(Softmax{}));
  list.push_back(make_op(LogSoftmax{}));
}

}  // namespace triptych
