// SPDX-License-Identifier: Apache-2.0
#include "core/ops/losses.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/reduction.h"
#include "core/ops/elementwise.h"
#include "core/ops/formula.h"

namespace triptych {
namespace {

constexpr double kUnit = 0x1p-24;

/// Inputs 0 and 1: scores and targets, f32 of one shape, at least one element.
void require_scores_and_targets(std::string_view op, Specs inputs) {
  require_dtype(op, inputs, 0, DType::F32);
  require_dtype(op, inputs, 1, DType::F32);
  require_shape(op, inputs, 1, inputs[0].shape);
  if (inputs[0].shape.elements() == 0) {
    throw_invalid(op, fmt::format("input 0 is {}: no element to average", to_string(inputs[0])));
  }
}

void require_one_element(std::string_view op, Specs inputs, std::size_t index) {
  require_dtype(op, inputs, index, DType::F32);
  if (inputs[index].shape.elements() == 1) return;
  throw_invalid(
      op, fmt::format("input {} is {}; it must have one element", index, to_string(inputs[index])));
}

double depth_over(const Shape& shape) {
  return static_cast<double>(reduction_depth(shape.elements()));
}

double elements_of(Specs inputs) { return static_cast<double>(inputs[0].shape.elements()); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

std::vector<TensorSpec> BinaryCrossEntropyWithLogits::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  require_scores_and_targets(kName, inputs);
  return {{DType::F32, {}}};
}

std::vector<ValueId> BinaryCrossEntropyWithLogits::gradient(const GradientContext& context) const {
  const auto x = context.inputs[0], z = context.inputs[1], dloss = context.output_gradients[0];
  if (!context.wanted[0] || !dloss.valid()) return {ValueId{}, ValueId{}};
  const auto op = make_op(BinaryCrossEntropyWithLogitsGradient{});
  return {context.emitter.emit_one(op, {x, z, dloss}), ValueId{}};
}

double BinaryCrossEntropyWithLogits::flops(Specs inputs, Specs) const {
  return 9 * elements_of(inputs);
}

void BinaryCrossEntropyWithLogits::reference(std::span<const RefTensor> inputs,
                                             std::span<RefTensor> outputs) const {
  const auto &x = inputs[0].values, &z = inputs[1].values;
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += std::max(x[i], 0.0) - x[i] * z[i] + std::log1p(std::exp(-std::abs(x[i])));
  }
  outputs[0].values[0] = sum / static_cast<double>(x.size());
}

// No term is negative, so the sum's error is relative. A soft target lets max(x, 0) - x z cancel,
// which the absolute part covers for |x| up to about 8 (targets 0 and 1 lose nothing).
ErrorBound BinaryCrossEntropyWithLogits::error_bound(Specs inputs) const {
  const auto depth = depth_over(inputs[0].shape);
  return {.terms = 0, .ulps = 2 * depth + 16, .absolute = 16 * kUnit};
}

std::vector<TensorSpec> BinaryCrossEntropyWithLogitsGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 3, 3);
  require_scores_and_targets(kName, inputs);
  require_one_element(kName, inputs, 2);
  return {inputs[0]};
}

double BinaryCrossEntropyWithLogitsGradient::flops(Specs inputs, Specs) const {
  return 6 * elements_of(inputs);
}

void BinaryCrossEntropyWithLogitsGradient::reference(std::span<const RefTensor> inputs,
                                                     std::span<RefTensor> outputs) const {
  const auto &x = inputs[0].values, &z = inputs[1].values;
  const double scale = inputs[2].values[0] / static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    outputs[0].values[i] = scale * (sigmoid(x[i]) - z[i]);
  }
}

// sigmoid(x) - z cancels. The bound assumes |dloss| of at most 1.
ErrorBound BinaryCrossEntropyWithLogitsGradient::error_bound(Specs inputs) const {
  return {.terms = 0, .ulps = 8, .absolute = 8 * kUnit / elements_of(inputs)};
}

namespace {

/// Scores as images x classes x pixels, labels as images x pixels.
struct Classes {
  std::int64_t images, classes, pixels;

  explicit Classes(const Shape& x)
      : images(x[0]), classes(x[1]), pixels(x.elements_between(2, x.rank())) {}

  /// Calls `visit(label index, label, index of class 0)` for each label that counts. The scores of
  /// its classes lie `pixels` apart.
  template <class Visitor>
  void for_each_counted(const std::vector<double>& labels, std::int64_t ignored,
                        const Visitor& visit) const {
    for (std::int64_t i = 0; i < images * pixels; ++i) {
      const auto label = to_int64(labels[static_cast<std::size_t>(i)]);
      if (label == ignored || label < 0 || label >= classes) continue;
      visit(static_cast<std::size_t>(i), label, i / pixels * classes * pixels + i % pixels);
    }
  }

  std::size_t at(std::int64_t start, std::int64_t c) const {
    return static_cast<std::size_t>(start + c * pixels);
  }

  /// log of the sum of exp over the classes.
  double log_sum_exp(const std::vector<double>& x, std::int64_t start) const {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t c = 0; c < classes; ++c) largest = std::max(largest, x[at(start, c)]);
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(x[at(start, c)] - largest);
    return largest + std::log(sum);
  }

  /// Divisor of a mean.
  double count(const std::vector<double>& labels, std::int64_t ignored) const {
    double counted = 0;
    for_each_counted(labels, ignored, [&](auto...) { ++counted; });
    return std::max(counted, 1.0);
  }
};

/// Checks scores, labels and reduction. Returns the loss's shape.
Shape require_scores_and_labels(std::string_view op, Specs inputs, const std::string& reduction) {
  constexpr DType integers[] = {DType::I32, DType::I64};
  const auto& x = inputs[0].shape;
  require_dtype(op, inputs, 0, DType::F32);
  require_dtype_among(op, inputs, 1, integers);
  if (x.rank() < 2 || x[1] < 1) {
    throw_invalid(op, fmt::format("input 0 is {}; its shape must be [N, C, ...] with C >= 1",
                                  to_string(inputs[0])));
  }
  Dims labels = x.dims();
  labels.erase(labels.begin() + 1);
  require_shape(op, inputs, 1, Shape(labels));
  if (reduction == "none") return Shape(std::move(labels));
  if (reduction == "mean" || reduction == "sum") return {};
  throw_invalid(op, fmt::format("reduction is \"{}\"; use mean, sum or none", reduction));
}

}  // namespace

std::vector<TensorSpec> SoftmaxCrossEntropyLoss::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  return {{DType::F32, require_scores_and_labels(kName, inputs, reduction)}};
}

std::vector<ValueId> SoftmaxCrossEntropyLoss::gradient(const GradientContext& context) const {
  const auto x = context.inputs[0], labels = context.inputs[1];
  const auto dloss = context.output_gradients[0];
  if (!context.wanted[0] || !dloss.valid()) return {ValueId{}, ValueId{}};
  SoftmaxCrossEntropyLossGradient op;
  op.reduction = reduction;
  op.ignore_index = ignore_index;
  return {context.emitter.emit_one(make_op(std::move(op)), {x, labels, dloss}), ValueId{}};
}

double SoftmaxCrossEntropyLoss::flops(Specs inputs, Specs) const { return 4 * elements_of(inputs); }

void SoftmaxCrossEntropyLoss::reference(std::span<const RefTensor> inputs,
                                        std::span<RefTensor> outputs) const {
  const auto &x = inputs[0].values, &labels = inputs[1].values;
  auto& loss = outputs[0].values;
  const Classes layout(inputs[0].spec.shape);
  const bool each = reduction == "none";
  std::ranges::fill(loss, 0.0);
  layout.for_each_counted(labels, ignore_index, [&](auto i, auto label, auto start) {
    loss[each ? i : 0] += layout.log_sum_exp(x, start) - x[layout.at(start, label)];
  });
  if (reduction == "mean") loss[0] /= layout.count(labels, ignore_index);
}

// max - x[label] and log(sum) are not negative, so their sums' errors are relative. The logarithm
// turns the relative error of its own sum into an absolute one, once per label.
ErrorBound SoftmaxCrossEntropyLoss::error_bound(Specs inputs) const {
  const auto& labels = inputs[1].shape;
  const auto classes = static_cast<double>(reduction_depth(inputs[0].shape[1]));
  const auto added = reduction == "sum" ? static_cast<double>(labels.elements()) : 1.0;
  return {.terms = 0,
          .ulps = (reduction == "none" ? 0 : 2 * depth_over(labels)) + 8,
          .absolute = kUnit * (2 * classes + 16) * added};
}

std::vector<TensorSpec> SoftmaxCrossEntropyLossGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 3, 3);
  const auto loss = require_scores_and_labels(kName, inputs, reduction);
  if (reduction == "none") {
    require_dtype(kName, inputs, 2, DType::F32);
    require_shape(kName, inputs, 2, loss);
  } else {
    require_one_element(kName, inputs, 2);
  }
  return {inputs[0]};
}

double SoftmaxCrossEntropyLossGradient::flops(Specs inputs, Specs) const {
  return 6 * elements_of(inputs);
}

void SoftmaxCrossEntropyLossGradient::reference(std::span<const RefTensor> inputs,
                                                std::span<RefTensor> outputs) const {
  const auto &x = inputs[0].values, &labels = inputs[1].values, &dloss = inputs[2].values;
  auto& dx = outputs[0].values;
  const Classes layout(inputs[0].spec.shape);
  const double count = reduction == "mean" ? layout.count(labels, ignore_index) : 1;
  std::ranges::fill(dx, 0.0);
  layout.for_each_counted(labels, ignore_index, [&](auto i, auto label, auto start) {
    const double scale = dloss[reduction == "none" ? i : 0] / count;
    const double total = layout.log_sum_exp(x, start);
    for (std::int64_t c = 0; c < layout.classes; ++c) {
      const auto at = layout.at(start, c);
      dx[at] = scale * (std::exp(x[at] - total) - (c == label ? 1 : 0));
    }
  });
}

// softmax(x) - 1 cancels. The bound assumes |dloss| of at most 1.
ErrorBound SoftmaxCrossEntropyLossGradient::error_bound(Specs inputs) const {
  const auto classes = static_cast<double>(reduction_depth(inputs[0].shape[1]));
  return {.terms = 0, .ulps = 2 * classes + 16, .absolute = kUnit * (2 * classes + 16)};
}

ValueId SoftmaxCrossEntropyLoss::denominator(OpEmitter& emitter, ValueId scores,
                                             ValueId labels) const {
  const Formula f(emitter);
  const auto classes = f.shape(scores)[1];
  const auto label = f.cast(labels, DType::F32);
  const auto is = [&](BinaryKind kind, std::int64_t number) {
    return f.cast(f.apply(kind, label, static_cast<double>(number)), DType::F32);
  };
  auto counts = f.mul(is(BinaryKind::GreaterOrEqual, 0), is(BinaryKind::Less, classes));
  if (ignore_index >= 0 && ignore_index < classes)
    counts = f.mul(counts, f.sub(1.0, is(BinaryKind::Equal, ignore_index)));
  return f.sum(counts, {}, false);
}

std::vector<TensorSpec> DiceLoss::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  require_scores_and_targets(kName, inputs);
  return {{DType::F32, {}}};
}

std::vector<ValueId> DiceLoss::expand(OpEmitter& emitter, Values inputs) const {
  const auto x = inputs[0], z = inputs[1];
  const Formula f(emitter);
  const auto p = f.apply(UnaryKind::Sigmoid, x);
  const auto sum = [&](ValueId value) { return f.sum(value, {}, false); };
  const auto overlap = f.add(f.mul(sum(f.mul(p, z)), 2.0), double{smooth});
  const auto total = f.add(f.add(sum(p), sum(z)), double{smooth});
  return {f.sub(1.0, f.div(overlap, total))};
}

void DiceLoss::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto &x = inputs[0].values, &z = inputs[1].values;
  double overlap = 0, total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double p = sigmoid(x[i]);
    overlap += p * z[i];
    total += p + z[i];
  }
  outputs[0].values[0] = 1 - (2 * overlap + smooth) / (total + smooth);
}

// The quotient of two sums of terms that are not negative, in [0, 1], is subtracted from 1.
ErrorBound DiceLoss::error_bound(Specs inputs) const {
  return {.terms = 0, .ulps = 4, .absolute = kUnit * (4 * depth_over(inputs[0].shape) + 24)};
}

void add_losses_ops(OpList& list) {
  list.push_back(make_op(BinaryCrossEntropyWithLogits{}));
  list.push_back(make_op(BinaryCrossEntropyWithLogitsGradient{}));
  list.push_back(make_op(SoftmaxCrossEntropyLoss{}));
  list.push_back(make_op(SoftmaxCrossEntropyLossGradient{}));
  list.push_back(make_op(DiceLoss{}));
}

}  // namespace triptych
