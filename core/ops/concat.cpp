// SPDX-License-Identifier: Apache-2.0
#include "core/ops/concat.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/axes.h"
#include "core/ops/slice.h"

namespace triptych {
namespace {

OpPtr piece(std::int64_t axis, std::int64_t start, std::int64_t size) {
  Slice slice;
  slice.starts = {start};
  slice.ends = {start + size};
  slice.axes = {axis};
  return make_op(slice);
}

/// Sizes of the outputs of `op` along `axis` of x.
Dims split_sizes(const Split& op, const Shape& x, std::int64_t axis) {
  const auto size = x[axis];
  if (op.split.empty()) {
    if (op.num_outputs < 1) throw_invalid("Split", "needs `split` or `num_outputs` of at least 1");
    const auto each = size / op.num_outputs + (size % op.num_outputs == 0 ? 0 : 1);
    if (op.num_outputs > std::max<std::int64_t>(size, 1) || each * (op.num_outputs - 1) > size) {
      throw_invalid("Split", fmt::format("axis {} of x {} is too short for {} outputs", axis,
                                         to_string(x), op.num_outputs));
    }
    Dims sizes(static_cast<std::size_t>(op.num_outputs), each);
    sizes.back() = size - each * (op.num_outputs - 1);
    return sizes;
  }
  std::int64_t total = 0;
  for (const auto part : op.split) {
    if (part < 0) throw_invalid("Split", fmt::format("size {} in `split`", part));
    total = checked_add(total, part);
  }
  if (total != size) {
    throw_invalid("Split", fmt::format("`split` adds up to {}, axis {} of x {} has {}", total, axis,
                                       to_string(x), size));
  }
  return op.split;
}

}  // namespace

std::vector<TensorSpec> Concat::infer(Specs inputs) const {
  if (inputs.empty()) throw_invalid(kName, "takes at least 1 input, got 0");
  const auto& first = inputs[0];
  const auto joined = resolve_axis(kName, axis, first.shape.rank());
  Dims dims = first.shape.dims();
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    bool fits = inputs[i].dtype == first.dtype && inputs[i].shape.rank() == first.shape.rank();
    for (std::int64_t a = 0; fits && a < first.shape.rank(); ++a) {
      fits = a == joined || inputs[i].shape[a] == first.shape[a];
    }
    if (!fits) {
      throw_invalid(kName, fmt::format("input {} is {}, input 0 is {}; they may differ only along "
                                       "axis {}",
                                       i, to_string(inputs[i]), to_string(first), joined));
    }
    auto& size = dims[static_cast<std::size_t>(joined)];
    size = checked_add(size, inputs[i].shape[joined]);
  }
  return {{first.dtype, Shape(std::move(dims))}};
}

std::vector<StridedView> Concat::views_in(const StridedView& y, Specs inputs) const {
  const auto joined = resolve_axis(kName, axis, y.shape.rank());
  std::vector<StridedView> views;
  std::int64_t start = 0;
  for (const auto& input : inputs) {
    views.push_back(piece_view(y, joined, start, input.shape[joined]));
    start += input.shape[joined];
  }
  return views;
}

std::vector<ValueId> Concat::gradient(const GradientContext& context) const {
  std::vector<ValueId> gradients;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    const auto size = context.emitter.spec(context.inputs[i]).shape.dim(axis);
    gradients.push_back(context.wanted[i] ? context.emitter.emit_one(piece(axis, start, size),
                                                                     {context.output_gradients[0]})
                                          : ValueId{});
    start += size;
  }
  return gradients;
}

void Concat::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  std::vector<TensorSpec> specs;
  for (const auto& input : inputs) specs.push_back(input.spec);
  const auto views = views_in(dense_view(outputs[0].spec.shape), specs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    copy_view(dense_view(specs[i].shape), inputs[i].values, views[i], outputs[0].values);
  }
}

std::vector<TensorSpec> Split::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  const auto& x = inputs[0];
  const auto cut = resolve_axis(kName, axis, x.shape.rank());
  std::vector<TensorSpec> outputs;
  for (const auto size : split_sizes(*this, x.shape, cut)) {
    Dims dims = x.shape.dims();
    dims[static_cast<std::size_t>(cut)] = size;
    outputs.push_back({x.dtype, Shape(std::move(dims))});
  }
  return outputs;
}

std::vector<ValueId> Split::expand(OpEmitter& emitter, Values inputs) const {
  const Shape& x = emitter.spec(inputs[0]).shape;
  const auto cut = resolve_axis(kName, axis, x.rank());
  std::vector<ValueId> outputs;
  std::int64_t start = 0;
  for (const auto size : split_sizes(*this, x, cut)) {
    outputs.push_back(emitter.emit_one(piece(cut, start, size), {inputs[0]}));
    start += size;
  }
  return outputs;
}

void Split::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto x = dense_view(inputs[0].spec.shape);
  const auto cut = resolve_axis(kName, axis, x.shape.rank());
  std::int64_t start = 0;
  for (auto& output : outputs) {
    const auto size = output.spec.shape[cut];
    copy_view(piece_view(x, cut, start, size), inputs[0].values, dense_view(output.spec.shape),
              output.values);
    start += size;
  }
}

void add_concat_ops(OpList& list) {
  list.push_back(make_op(Concat{}));
  list.push_back(make_op(Split{}));
}

}  // namespace triptych
