// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reshape.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/axes.h"
#include "core/ops/sharding.h"

namespace triptych {
namespace {

/// dx of every operator here: dy under x's shape.
std::vector<ValueId> reshape_back(const GradientContext& context) {
  const Shape& x = context.emitter.spec(context.inputs[0]).shape;
  Reshape back;
  back.shape = x.dims();
  back.allowzero = x.elements() == 0;
  return {context.emitter.emit_one(make_op(back), {context.output_gradients[0]})};
}

void copy_values(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) {
  outputs[0].values = inputs[0].values;
}

/// `shape` with its zeros replaced. -1 stays. Throws for anything else below 0.
Dims resolve_zeros(const Reshape& op, const Shape& x) {
  Dims dims = op.shape;
  for (std::size_t a = 0; a < dims.size(); ++a) {
    if (dims[a] < -1) throw_invalid("Reshape", fmt::format("size {} in `shape`", dims[a]));
    if (dims[a] != 0 || op.allowzero) continue;
    if (static_cast<std::int64_t>(a) >= x.rank()) {
      throw_invalid("Reshape", fmt::format("0 at place {} of `shape` copies no axis of x {}; set "
                                           "allowzero for an empty tensor",
                                           a, to_string(x)));
    }
    dims[a] = x.dims()[a];
  }
  return dims;
}

/// Replaces the one -1 in `dims`, if any, by the size that makes the product `elements`.
void resolve_rest(Dims& dims, std::int64_t elements) {
  const auto wildcard = std::find(dims.begin(), dims.end(), -1);
  if (wildcard == dims.end()) return;
  std::int64_t known = 1;
  for (auto size = dims.begin(); size != dims.end(); ++size) {
    if (size == wildcard) continue;
    if (*size == -1) throw_invalid("Reshape", "more than one -1 in `shape`");
    known = checked_mul(known, *size);
  }
  if (known == 0) throw_invalid("Reshape", "-1 beside a size of 0 could be anything");
  if (elements % known != 0) {
    throw_invalid("Reshape", fmt::format("{} elements do not divide by {}, the product of the "
                                         "sizes beside -1",
                                         elements, known));
  }
  *wildcard = elements / known;
}

}  // namespace

std::vector<TensorSpec> Reshape::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  const auto& x = inputs[0];
  Dims dims = resolve_zeros(*this, x.shape);
  resolve_rest(dims, x.shape.elements());
  const Shape y(std::move(dims));
  if (y.elements() != x.shape.elements()) {
    throw_invalid(kName, fmt::format("x {} has {} elements, shape {} has {}", to_string(x),
                                     x.shape.elements(), to_string(y), y.elements()));
  }
  return {{x.dtype, y}};
}

std::vector<ValueId> Reshape::gradient(const GradientContext& context) const {
  return reshape_back(context);
}

std::vector<Sharding> Reshape::shardings(Specs inputs, Specs outputs, std::int64_t parts) const {
  // Where an axis of y is an axis of x.
  const auto &x = inputs[0].shape, &y = outputs[0].shape;
  std::vector<Sharding> rules;
  for (std::int64_t from = 0; from < x.rank(); ++from) {
    for (std::int64_t axis = 0; axis < y.rank(); ++axis) {
      if (y[axis] != x[from] || y[axis] % parts != 0 ||
          y.elements_between(0, axis) != x.elements_between(0, from))
        continue;
      Reshape part;
      part.shape = y.dims();
      part.shape[static_cast<std::size_t>(axis)] /= parts;
      rules.push_back({.inputs = {from}, .outputs = {axis}, .op = make_op(part)});
      break;
    }
  }
  return rules;
}

void Reshape::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  copy_values(inputs, outputs);
}

std::vector<TensorSpec> Flatten::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  const auto& x = inputs[0];
  const auto rank = x.shape.rank();
  const auto split = axis == rank ? rank : resolve_axis(kName, axis, rank);
  return {{x.dtype, {x.shape.elements_between(0, split), x.shape.elements_between(split, rank)}}};
}

std::vector<ValueId> Flatten::gradient(const GradientContext& context) const {
  return reshape_back(context);
}

void Flatten::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  copy_values(inputs, outputs);
}

std::vector<TensorSpec> Squeeze::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  const auto& x = inputs[0];
  const Dims removed = resolve_axes(kName, axes, x.shape.rank());
  Dims dims;
  for (std::int64_t a = 0; a < x.shape.rank(); ++a) {
    const bool named = std::find(removed.begin(), removed.end(), a) != removed.end();
    if (named && x.shape[a] != 1) {
      throw_invalid(kName, fmt::format("axis {} of x {} is not 1", a, to_string(x)));
    }
    if (!named && (!axes.empty() || x.shape[a] != 1)) dims.push_back(x.shape[a]);
  }
  return {{x.dtype, Shape(std::move(dims))}};
}

std::vector<ValueId> Squeeze::gradient(const GradientContext& context) const {
  return reshape_back(context);
}

void Squeeze::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  copy_values(inputs, outputs);
}

std::vector<TensorSpec> Unsqueeze::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  const auto& x = inputs[0];
  const auto rank = x.shape.rank() + static_cast<std::int64_t>(axes.size());
  const Dims inserted = resolve_axes(kName, axes, rank);
  Dims dims;
  auto next = x.shape.dims().begin();
  for (std::int64_t a = 0; a < rank; ++a) {
    const bool is_new = std::find(inserted.begin(), inserted.end(), a) != inserted.end();
    dims.push_back(is_new ? 1 : *next++);
  }
  return {{x.dtype, Shape(std::move(dims))}};
}

std::vector<ValueId> Unsqueeze::gradient(const GradientContext& context) const {
  return reshape_back(context);
}

void Unsqueeze::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  copy_values(inputs, outputs);
}

std::vector<TensorSpec> Identity::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  return {inputs[0]};
}

std::vector<ValueId> Identity::gradient(const GradientContext& context) const {
  return {context.output_gradients[0]};
}

std::vector<Sharding> Identity::shardings(Specs inputs, Specs outputs, std::int64_t) const {
  auto rules = elementwise_shardings(inputs, outputs);
  rules.insert(rules.begin(), linear_sharding());
  return rules;
}

void Identity::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  copy_values(inputs, outputs);
}

void add_reshape_ops(OpList& list) {
  list.push_back(make_op(Reshape{}));
  list.push_back(make_op(Flatten{}));
  list.push_back(make_op(Squeeze{}));
  list.push_back(make_op(Unsqueeze{}));
  list.push_back(make_op(Identity{}));
}

}  // namespace triptych
