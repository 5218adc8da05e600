// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gather.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/ops/axes.h"
#include "core/ops/elementwise.h"

namespace triptych {
namespace {

/// y's shape for x taken at `indices` along `axis` (resolved).
Shape gathered_shape(std::string_view op, const Shape& x, const TensorSpec& indices,
                     std::int64_t axis) {
  if (indices.dtype != DType::I32 && indices.dtype != DType::I64) {
    throw_invalid(op, fmt::format("indices are {}; they must be i32 or i64", to_string(indices)));
  }
  if (x[axis] == 0 && indices.shape.elements() > 0) {
    throw_invalid(op, fmt::format("axis {} of x {} is empty, nothing can be taken from it", axis,
                                  to_string(x)));
  }
  Dims dims(x.dims().begin(), x.dims().begin() + axis);
  dims.insert(dims.end(), indices.shape.dims().begin(), indices.shape.dims().end());
  dims.insert(dims.end(), x.dims().begin() + axis + 1, x.dims().end());
  return Shape(std::move(dims));
}

/// Calls visit(position in y, position in x) for y seen as [outer, indices, inner], row-major.
template <class Visitor>
void for_each_pair(const Shape& x, std::int64_t axis, std::span<const double> indices,
                   const Visitor& visit) {
  const auto outer = x.elements_between(0, axis);
  const auto inner = x.elements_between(axis + 1, x.rank());
  std::size_t y = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::size_t j = 0; j < indices.size(); ++j) {
      const auto index = to_int64(indices[j]), size = x[axis];
      if (!is_index(index, size)) {
        throw_invalid(Gather::kName,
                      to_string(IndexFault{static_cast<std::int64_t>(j), index}, size));
      }
      const auto row = o * size + (index < 0 ? index + size : index);
      for (std::int64_t i = 0; i < inner; ++i)
        visit(y++, static_cast<std::size_t>(row * inner + i));
    }
  }
}

}  // namespace

GatherGeometry::GatherGeometry(const Shape& x, std::int64_t axis, const Shape& indices)
    : count(indices.elements()) {
  const auto along = normalize_axis(axis, x.rank());
  outer = x.elements_between(0, along);
  size = x[along];
  inner = x.elements_between(along + 1, x.rank());
}

void check_indices(std::string_view op, const Tensor& indices, std::int64_t size) {
  const auto values = to_doubles(indices);
  for (std::size_t j = 0; j < values.size(); ++j) {
    const auto index = to_int64(values[j]);
    if (is_index(index, size)) continue;
    throw_invalid(op, to_string(IndexFault{static_cast<std::int64_t>(j), index}, size));
  }
}

std::string to_string(IndexFault fault, std::int64_t size) {
  return fmt::format("index {} at position {} is outside [{}, {}]", fault.index, fault.position,
                     -size, size - 1);
}

std::vector<TensorSpec> Gather::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  const Shape& x = inputs[0].shape;
  const auto along = resolve_axis(kName, axis, x.rank());
  return {{inputs[0].dtype, gathered_shape(kName, x, inputs[1], along)}};
}

std::vector<ValueId> Gather::gradient(const GradientContext& context) const {
  if (!context.wanted[0]) return {ValueId{}, ValueId{}};
  GatherGradient back;
  back.axis = axis;
  back.input_shape = context.emitter.spec(context.inputs[0]).shape.dims();
  return {context.emitter.emit_one(make_op(back), {context.output_gradients[0], context.inputs[1]}),
          ValueId{}};
}

void Gather::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const Shape& x = inputs[0].spec.shape;
  for_each_pair(x, resolve_axis(kName, axis, x.rank()), inputs[1].values,
                [&](std::size_t p, std::size_t q) { outputs[0].values[p] = inputs[0].values[q]; });
}

std::vector<TensorSpec> GatherGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  require_dtype(kName, inputs, 0, DType::F32);
  const Shape x(input_shape);
  const auto along = resolve_axis(kName, axis, x.rank());
  require_shape(kName, inputs, 0, gathered_shape(kName, x, inputs[1], along));
  return {{DType::F32, x}};
}

void GatherGradient::reference(std::span<const RefTensor> inputs,
                               std::span<RefTensor> outputs) const {
  auto& dx = outputs[0];
  const Shape& x = dx.spec.shape;
  std::fill(dx.values.begin(), dx.values.end(), 0.0);
  for_each_pair(x, resolve_axis(kName, axis, x.rank()), inputs[1].values,
                [&](std::size_t p, std::size_t q) { dx.values[q] += inputs[0].values[p]; });
}

ErrorBound GatherGradient::error_bound(Specs inputs) const {
  return {.terms = static_cast<double>(inputs[1].shape.elements())};
}

void add_gather_ops(OpList& list) {
  list.push_back(make_op(Gather{}));
  list.push_back(make_op(GatherGradient{}));
}

}  // namespace triptych
