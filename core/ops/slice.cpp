// SPDX-License-Identifier: Apache-2.0
#include "core/ops/slice.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/ops/axes.h"
#include "core/ops/sharding.h"

namespace triptych {
namespace {

/// The axes that `op` cuts, after checking that its lists agree with each other.
Dims sliced_axes(const Slice& op, std::int64_t rank) {
  const auto count = op.starts.size();
  const auto optional = [count](const Dims& list) { return list.empty() || list.size() == count; };
  if (op.ends.size() != count || !optional(op.axes) || !optional(op.steps)) {
    throw_invalid("Slice", fmt::format("starts, ends, axes and steps have {}, {}, {} and {} "
                                       "entries; they must have equally many",
                                       count, op.ends.size(), op.axes.size(), op.steps.size()));
  }
  Dims axes = op.axes;
  if (axes.empty()) {
    axes.resize(count);
    std::iota(axes.begin(), axes.end(), 0);
  }
  return resolve_axes("Slice", axes, rank);
}

struct AxisCut {
  std::int64_t start = 0, step = 1, count = 0;
};

/// One axis of `size` elements cut by start : end : step, as NumPy and ONNX clamp it.
AxisCut clamp_range(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t size) {
  if (step == 0) throw_invalid("Slice", "a step is 0");
  if (size == 0) return {};
  // A step beyond the axis reads one element for every size: this keeps all products small.
  step = std::clamp(step, -size, size);
  if (start < 0) start += size;
  if (end < 0) end += size;
  const std::int64_t low = step > 0 ? 0 : -1;
  start = std::clamp<std::int64_t>(start, 0, size + low);
  end = std::clamp(end, low, size + low);
  const auto count = step > 0 ? ceil_div(std::max<std::int64_t>(end - start, 0), step)
                              : ceil_div(std::max<std::int64_t>(start - end, 0), -step);
  return {count == 0 ? 0 : start, step, count};
}

}  // namespace

SliceGeometry SliceGeometry::of(const Slice& op, const Shape& x) {
  const auto rank = static_cast<std::size_t>(x.rank());
  const Dims axes = sliced_axes(op, x.rank());
  SliceGeometry geometry{Dims(rank, 0), Dims(rank, 1), {}};
  Dims dims = x.dims();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<std::size_t>(axes[i]);
    const auto step = op.steps.empty() ? 1 : op.steps[i];
    const AxisCut range = clamp_range(op.starts[i], op.ends[i], step, dims[a]);
    geometry.starts[a] = range.start;
    geometry.steps[a] = range.step;
    dims[a] = range.count;
  }
  geometry.output = Shape(std::move(dims));
  return geometry;
}

StridedView Slice::view_of(const StridedView& x) const {
  const auto geometry = SliceGeometry::of(*this, x.shape);
  return section_view(x, geometry.starts, geometry.steps, geometry.output);
}

std::vector<TensorSpec> Slice::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  return {{inputs[0].dtype, SliceGeometry::of(*this, inputs[0].shape).output}};
}

std::vector<ValueId> Slice::gradient(const GradientContext& context) const {
  SliceGradient back;
  back.input_shape = context.emitter.spec(context.inputs[0]).shape.dims();
  back.starts = starts;
  back.ends = ends;
  back.axes = axes;
  back.steps = steps;
  return {context.emitter.emit_one(make_op(back), {context.output_gradients[0]})};
}

std::vector<Sharding> Slice::shardings(Specs, Specs, std::int64_t) const {
  return {linear_sharding()};
}

void Slice::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  copy_view(view_of(dense_view(inputs[0].spec.shape)), inputs[0].values,
            dense_view(outputs[0].spec.shape), outputs[0].values);
}

Slice SliceGradient::forward() const {
  Slice slice;
  slice.starts = starts;
  slice.ends = ends;
  slice.axes = axes;
  slice.steps = steps;
  return slice;
}

std::vector<TensorSpec> SliceGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  require_dtype(kName, inputs, 0, DType::F32);
  const Shape x(input_shape);
  require_shape(kName, inputs, 0, SliceGeometry::of(forward(), x).output);
  return {{DType::F32, x}};
}

void SliceGradient::reference(std::span<const RefTensor> inputs,
                              std::span<RefTensor> outputs) const {
  auto& dx = outputs[0];
  std::fill(dx.values.begin(), dx.values.end(), 0.0);
  copy_view(dense_view(inputs[0].spec.shape), inputs[0].values,
            forward().view_of(dense_view(dx.spec.shape)), dx.values);
}

void add_slice_ops(OpList& list) {
  list.push_back(make_op(Slice{}));
  list.push_back(make_op(SliceGradient{}));
}

}  // namespace triptych
