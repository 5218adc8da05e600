// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/reduction.h"
#include "core/ops/axes.h"
#include "core/ops/elementwise.h"
#include "core/ops/expand.h"
#include "core/ops/formula.h"
#include "core/ops/sharding.h"

namespace triptych {
namespace {

using enum ReduceKind;

struct Entry {
  ReduceKind kind;
  std::string_view name;
  std::string_view summary;
  double start;
  double (*combine)(double total, double x);
};

double add(double total, double x) { return total + x; }
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::array kEntries = {
    Entry{Sum, "ReduceSum", "y = sum of x over `axes`", 0, add},
    Entry{Mean, "ReduceMean", "y = mean of x over `axes`", 0, add},
    Entry{Max, "ReduceMax", "y = largest x over `axes`, or NaN if any is NaN", -kInfinity,
          [](double total, double x) { return outranks(x, total) ? x : total; }},
    Entry{Min, "ReduceMin", "y = smallest x over `axes`, or NaN if any is NaN", kInfinity,
          [](double total, double x) { return x < total || is_nan(x) ? x : total; }}};

constexpr std::array kKinds = {Sum, Mean, Max, Min};

const Entry& entry(ReduceKind kind) { return kEntries[static_cast<std::size_t>(kind)]; }

constexpr DType kF32Only[] = {DType::F32};
constexpr DType kSumDtypes[] = {DType::F32, DType::I32, DType::I64};

/// x's shape with size 1 on the reduced axes, or without them.
Shape reduced_shape(const Shape& x, const std::vector<bool>& reduced, bool keepdims) {
  Dims dims;
  for (std::size_t axis = 0; axis < reduced.size(); ++axis) {
    if (!reduced[axis]) dims.push_back(x.dims()[axis]);
    if (reduced[axis] && keepdims) dims.push_back(1);
  }
  return Shape(std::move(dims));
}

ValueId expand_to(OpEmitter& emitter, ValueId value, const Shape& shape) {
  Expand op;
  op.shape = shape.dims();
  return emitter.emit_one(make_op(std::move(op)), {value});
}

}  // namespace

std::span<const ReduceKind> all_reduce_kinds() { return kKinds; }

std::string_view Reduce::name() const { return entry(kind).name; }
std::string_view Reduce::summary() const { return entry(kind).summary; }

ReduceGeometry ReduceGeometry::of(const Reduce& op, const Shape& x) {
  ReduceGeometry geometry;
  geometry.reduced.assign(static_cast<std::size_t>(x.rank()), op.axes.empty());
  for (const auto axis : resolve_axes(op.name(), op.axes, x.rank())) {
    geometry.reduced[static_cast<std::size_t>(axis)] = true;
  }
  bool inside = false;
  for (std::size_t axis = 0; axis < geometry.reduced.size(); ++axis) {
    const auto size = x.dims()[axis];
    if (size == 1) continue;
    if (geometry.reduced[axis]) {
      geometry.contiguous = geometry.contiguous && (inside || geometry.count == 1);
      geometry.count *= size;
    } else {
      (geometry.count == 1 ? geometry.outer : geometry.inner) *= size;
    }
    inside = geometry.reduced[axis];
  }
  return geometry;
}

std::vector<TensorSpec> Reduce::infer(Specs inputs) const {
  require_inputs(name(), inputs, 1, 1);
  require_dtype_among(name(), inputs, 0,
                      kind == Mean ? std::span<const DType>(kF32Only) : kSumDtypes);
  const auto geometry = ReduceGeometry::of(*this, inputs[0].shape);
  auto y = reduced_shape(inputs[0].shape, geometry.reduced, keepdims);
  if (kind != Sum && geometry.count == 0 && y.elements() > 0) {
    throw_invalid(name(),
                  fmt::format("input 0 is {}: nothing to reduce; only ReduceSum has a value "
                              "for no elements",
                              to_string(inputs[0])));
  }
  return {{inputs[0].dtype, std::move(y)}};
}

std::vector<ValueId> Reduce::gradient(const GradientContext& context) const {
  const auto x = context.inputs[0];
  if (!context.wanted[0] || !context.output_gradients[0].valid()) return {ValueId{}};
  const Formula f(context.emitter);
  const Shape x_shape = f.shape(x);
  const auto geometry = ReduceGeometry::of(*this, x_shape);
  const auto kept = reduced_shape(x_shape, geometry.reduced, true);
  auto dy = f.reshape(context.output_gradients[0], kept);
  if (kind == Mean) dy = f.mul(dy, 1 / static_cast<double>(geometry.count));
  if (kind == Sum || kind == Mean) return {expand_to(context.emitter, dy, x_shape)};

  const auto y = f.reshape(context.outputs[0], kept);
  const auto is_extreme = f.cast(f.apply(BinaryKind::Equal, x, y), context.emitter.spec(x).dtype);
  const auto ties = f.sum(is_extreme, axes);
  return {f.mul(is_extreme, f.div(dy, ties))};
}

double Reduce::flops(Specs inputs, Specs) const {
  return static_cast<double>(inputs[0].shape.elements());
}

std::vector<Sharding> Reduce::shardings(Specs inputs, Specs, std::int64_t) const {
  const auto rank = inputs[0].shape.rank();
  std::vector<bool> reduced(static_cast<std::size_t>(rank), axes.empty());
  for (const auto axis : axes) reduced[static_cast<std::size_t>(normalize_axis(axis, rank))] = true;
  std::vector<Sharding> rules;
  for (std::int64_t axis = 0, kept = 0; axis < rank; ++axis) {
    if (reduced[static_cast<std::size_t>(axis)]) continue;
    rules.push_back({.inputs = {axis}, .outputs = {keepdims ? axis : kept++}});
  }
  return rules;
}

void Reduce::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto& spec = inputs[0].spec;
  const auto& x = inputs[0].values;
  auto& y = outputs[0].values;
  const auto geometry = ReduceGeometry::of(*this, spec.shape);
  const auto strides =
      broadcast_strides(reduced_shape(spec.shape, geometry.reduced, true), spec.shape);
  std::ranges::fill(y, entry(kind).start);
  std::size_t n = 0;
  for_each_index(spec.shape, [&](const Dims& index) {
    auto& total = y[static_cast<std::size_t>(flat_index(index, strides))];
    total = entry(kind).combine(total, x[n++]);
  });
  for (auto& value : y) {
    if (kind == Mean) value /= static_cast<double>(geometry.count);
    if (!is_floating(spec.dtype)) {
      value = wrap_integer(spec.dtype, to_int64(value));
    }
  }
}

ErrorBound Reduce::error_bound(Specs inputs) const {
  auto bound = elementwise_bound(inputs[0].dtype, 4);
  if (kind == Max || kind == Min) {
    bound.ulps = 0;
  } else {
    bound.terms =
        static_cast<double>(reduction_depth(ReduceGeometry::of(*this, inputs[0].shape).count));
  }
  return bound;
}

std::vector<TensorSpec> ArgMax::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  if (inputs[0].dtype == DType::Bool) {
    throw_invalid(kName, fmt::format("input 0 is {}; its dtype must be a number's, Cast it first",
                                     to_string(inputs[0])));
  }
  const auto& x = inputs[0].shape;
  const auto along = resolve_axis(kName, axis, x.rank());
  std::vector<bool> reduced(static_cast<std::size_t>(x.rank()), false);
  reduced[static_cast<std::size_t>(along)] = true;
  auto y = reduced_shape(x, reduced, keepdims);
  if (x[along] == 0 && y.elements() > 0) {
    throw_invalid(
        kName, fmt::format("input 0 is {}: no element along axis {}", to_string(inputs[0]), along));
  }
  return {{DType::I64, std::move(y)}};
}

void ArgMax::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto& shape = inputs[0].spec.shape;
  const auto& x = inputs[0].values;
  auto& y = outputs[0].values;
  const auto along = normalize_axis(axis, shape.rank());
  const auto count = shape[along];
  const auto inner = shape.elements_between(along + 1, shape.rank());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto o = static_cast<std::int64_t>(i) / inner, k = static_cast<std::int64_t>(i) % inner;
    const auto at = [&](std::int64_t c) {
      return x[static_cast<std::size_t>((o * count + c) * inner + k)];
    };
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < count; ++c) {
      if (exceeds(at(c), at(best)) || (select_last_index && ties(at(c), at(best)))) best = c;
    }
    y[i] = static_cast<double>(best);
  }
}

void add_reduce_ops(OpList& list) {
  for (const auto kind : all_reduce_kinds()) list.push_back(make_op(Reduce(kind)));
  list.push_back(make_op(ArgMax{}));
}

}  // namespace triptych
