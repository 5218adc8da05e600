// SPDX-License-Identifier: Apache-2.0
#include "core/ops/normalization.h"

#include <fmt/core.h>

#include <cmath>

#include "core/ops/axes.h"
#include "core/ops/elementwise.h"
#include "core/ops/formula.h"
#include "core/ops/reduce.h"

namespace triptych {
namespace {

/// Throws unless x is f32 [N, C, ...], not empty, and scale and bias are f32 [C].
void require_normalizable(std::string_view op, Specs inputs) {
  require_inputs(op, inputs, 3, 3);
  for (std::size_t i = 0; i < 3; ++i) require_dtype(op, inputs, i, DType::F32);
  const auto& x = inputs[0].shape;
  if (x.rank() < 2 || x.elements() == 0) {
    throw_invalid(op, fmt::format("x is {}; it must be [N, C, ...] with no size 0", to_string(x)));
  }
  require_shape(op, inputs, 1, {x[1]});
  require_shape(op, inputs, 2, {x[1]});
}

/// (x - mean) / sqrt(variance + epsilon), the statistics taken over `axes`.
ValueId normalized(OpEmitter& emitter, ValueId x, const std::vector<std::int64_t>& axes,
                   float epsilon) {
  const Formula f(emitter);
  const auto mean = [&](ValueId value) {
    return emitter.emit_one(make_op(Reduce(ReduceKind::Mean, axes)), {value});
  };
  const auto centered = f.sub(x, mean(x));
  const auto variance = mean(f.mul(centered, centered));
  return f.div(centered, f.apply(UnaryKind::Sqrt, f.add(variance, double{epsilon})));
}

/// Reference of the same over every run of `count` neighbouring elements.
void normalize(const std::vector<double>& x, std::size_t count, float epsilon,
               std::vector<double>& y) {
  for (std::size_t first = 0; first < x.size(); first += count) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = first; i < first + count; ++i) mean += x[i] / static_cast<double>(count);
    for (std::size_t i = first; i < first + count; ++i) {
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(count);
    }
    for (std::size_t i = first; i < first + count; ++i) {
      y[i] = (x[i] - mean) / std::sqrt(variance + double{epsilon});
    }
  }
}

/// Two sums, the difference, its square, the quotient, and an operation with each other input.
double normalization_flops(Specs inputs) {
  return (4 + static_cast<double>(inputs.size())) * static_cast<double>(inputs[0].shape.elements());
}

GroupNormalization group_per_channel(const InstanceNormalization& op, const Shape& x) {
  GroupNormalization groups;
  groups.num_groups = x[1];
  groups.epsilon = op.epsilon;
  return groups;
}

}  // namespace

std::vector<TensorSpec> LayerNormalization::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 3);
  const auto& x = inputs[0].shape;
  resolve_axis(kName, axis, x.rank());
  if (x.elements() == 0) throw_invalid(kName, fmt::format("x is {}, empty", to_string(x)));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require_dtype(kName, inputs, i, DType::F32);
    if (name_errors(kName, [&] { return broadcast_shapes(inputs[i].shape, x); }) == x) continue;
    throw_invalid(kName, fmt::format("input {} is {}; it must broadcast to x, {}", i,
                                     to_string(inputs[i].shape), to_string(x)));
  }
  return {inputs[0]};
}

std::vector<ValueId> LayerNormalization::expand(OpEmitter& emitter, Values inputs) const {
  const Formula f(emitter);
  const auto rank = f.shape(inputs[0]).rank();
  std::vector<std::int64_t> axes;
  for (auto a = resolve_axis(kName, axis, rank); a < rank; ++a) axes.push_back(a);
  const auto scaled = f.mul(normalized(emitter, inputs[0], axes, epsilon), inputs[1]);
  return {inputs.size() == 3 ? f.add(scaled, inputs[2]) : scaled};
}

double LayerNormalization::flops(Specs inputs, Specs) const { return normalization_flops(inputs); }

void LayerNormalization::reference(std::span<const RefTensor> inputs,
                                   std::span<RefTensor> outputs) const {
  const auto& shape = inputs[0].spec.shape;
  auto& y = outputs[0].values;
  const auto first = resolve_axis(kName, axis, shape.rank());
  normalize(inputs[0].values, static_cast<std::size_t>(shape.elements_between(first, shape.rank())),
            epsilon, y);
  const auto at = [&](const RefTensor& operand, const Dims& index) {
    const auto strides = broadcast_strides(operand.spec.shape, shape);
    return operand.values[static_cast<std::size_t>(flat_index(index, strides))];
  };
  std::size_t i = 0;
  for_each_index(shape, [&](const Dims& index) {
    y[i] = y[i] * at(inputs[1], index) + (inputs.size() == 3 ? at(inputs[2], index) : 0.0);
    ++i;
  });
}

std::vector<TensorSpec> GroupNormalization::infer(Specs inputs) const {
  require_normalizable(kName, inputs);
  const auto channels = inputs[0].shape[1];
  if (num_groups < 1 || channels % num_groups != 0) {
    throw_invalid(
        kName, fmt::format("num_groups {} does not divide x's {} channels", num_groups, channels));
  }
  return {inputs[0]};
}

std::vector<ValueId> GroupNormalization::expand(OpEmitter& emitter, Values inputs) const {
  const Formula f(emitter);
  const Shape shape = f.shape(inputs[0]);
  const auto groups = f.reshape(
      inputs[0], {shape[0], num_groups, shape.elements_between(1, shape.rank()) / num_groups});
  const auto y = f.reshape(normalized(emitter, groups, {2}, epsilon), shape);
  Dims per_channel(static_cast<std::size_t>(shape.rank()) - 1, 1);
  per_channel[0] = shape[1];
  const auto scale = f.reshape(inputs[1], Shape(per_channel));
  const auto bias = f.reshape(inputs[2], Shape(per_channel));
  return {f.add(f.mul(y, scale), bias)};
}

double GroupNormalization::flops(Specs inputs, Specs) const { return normalization_flops(inputs); }

void GroupNormalization::reference(std::span<const RefTensor> inputs,
                                   std::span<RefTensor> outputs) const {
  const auto& shape = inputs[0].spec.shape;
  auto& y = outputs[0].values;
  normalize(inputs[0].values, y.size() / static_cast<std::size_t>(shape[0] * num_groups), epsilon,
            y);
  const auto channels = static_cast<std::size_t>(shape[1]);
  const auto plane = static_cast<std::size_t>(shape.elements_between(2, shape.rank()));
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto c = i / plane % channels;
    y[i] = y[i] * inputs[1].values[c] + inputs[2].values[c];
  }
}

std::vector<TensorSpec> InstanceNormalization::infer(Specs inputs) const {
  require_normalizable(kName, inputs);
  return {inputs[0]};
}

std::vector<ValueId> InstanceNormalization::expand(OpEmitter& emitter, Values inputs) const {
  const Shape shape = emitter.spec(inputs[0]).shape;
  return group_per_channel(*this, shape).expand(emitter, inputs);
}

double InstanceNormalization::flops(Specs inputs, Specs) const {
  return normalization_flops(inputs);
}

void InstanceNormalization::reference(std::span<const RefTensor> inputs,
                                      std::span<RefTensor> outputs) const {
  group_per_channel(*this, inputs[0].spec.shape).reference(inputs, outputs);
}

void add_normalization_ops(OpList& list) {
  list.push_back(make_op(LayerNormalization{}));
  list.push_back(make_op(GroupNormalization{}));
  list.push_back(make_op(InstanceNormalization{}));
}

}  // namespace triptych
