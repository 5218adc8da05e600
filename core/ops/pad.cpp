// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pad.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/checked_math.h"
#include "core/ops/axes.h"

namespace triptych {
namespace {

/// y's shape. Throws for attributes that do not fit x.
Shape padded_shape(const Pad& op, const Shape& x) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (op.mode != "constant" && op.mode != "reflect" && op.mode != "edge") {
    throw_invalid("Pad", fmt::format("mode '{}'; use constant, reflect or edge", op.mode));
  }
  if (op.pads.size() != 2 * rank) {
    throw_invalid("Pad", fmt::format("pads has {} entries, x of rank {} needs {}", op.pads.size(),
                                     rank, 2 * rank));
  }
  Dims dims = x.dims();
  for (std::size_t a = 0; a < rank; ++a) {
    const auto before = op.pads[a];
    const auto after = op.pads[rank + a];
    const auto size = checked_add(checked_add(dims[a], before), after);
    if (std::min(before, after) < -dims[a] || size < 0) {
      throw_invalid("Pad", fmt::format("pads {} and {} crop more than axis {} of x {} has", before,
                                       after, a, to_string(x)));
    }
    if (op.mode != "constant" && dims[a] == 0 && size > 0) {
      throw_invalid("Pad", fmt::format("axis {} of x {} has nothing to {}", a, to_string(x),
                                       op.mode == "edge" ? "repeat" : op.mode));
    }
    dims[a] = size;
  }
  Shape shape(std::move(dims));
  for (std::size_t a = 0; shape.elements() == 0 && a < rank; ++a)
    require_listable("Pad", a, shape.dims()[a]);
  return shape;
}

/// The index in [0, size) that position `i`, counted from x's first element, copies. -1: none.
std::int64_t source_index(const std::string& mode, std::int64_t i, std::int64_t size) {
  if (i >= 0 && i < size) return i;
  if (mode == "constant") return -1;
  if (mode == "edge" || size == 1) return std::clamp<std::int64_t>(i, 0, size - 1);
  const auto period = 2 * (size - 1);
  const auto phase = std::abs(i) % period;
  return phase < size ? phase : period - phase;
}

}  // namespace

Tensor Pad::value_as(DType dtype) const {
  const double wide = value;
  return from_doubles({dtype, {}}, std::span(&wide, 1));
}

std::vector<TensorSpec> Pad::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  return {{inputs[0].dtype, padded_shape(*this, inputs[0].shape)}};
}

std::vector<Dims> pad_sources(const Pad& op, const Shape& x) {
  const Shape y = padded_shape(op, x);
  std::vector<Dims> sources(op.pads.size() / 2);
  for (std::size_t a = 0; a < sources.size(); ++a) {
    for (std::int64_t i = 0; i < y.dims()[a]; ++i) {
      sources[a].push_back(source_index(op.mode, i - op.pads[a], x.dims()[a]));
    }
  }
  return sources;
}

PadInterior pad_interior(const Pad& op, const StridedView& x, const StridedView& y) {
  PadInterior interior{x, y};
  const auto rank = x.shape.rank();
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const auto before = op.pads[static_cast<std::size_t>(axis)];
    const auto after = op.pads[static_cast<std::size_t>(rank + axis)];
    const auto start = std::max<std::int64_t>(-before, 0);
    const auto end = std::min(x.shape[axis], x.shape[axis] + after);
    const auto size = std::max<std::int64_t>(end - start, 0);
    interior.in_x = piece_view(interior.in_x, axis, start, size);
    interior.in_y = piece_view(interior.in_y, axis, std::max<std::int64_t>(before, 0), size);
  }
  return interior;
}

std::vector<ValueId> Pad::gradient(const GradientContext& context) const {
  PadGradient back;
  back.input_shape = context.emitter.spec(context.inputs[0]).shape.dims();
  back.pads = pads;
  back.mode = mode;
  return {context.emitter.emit_one(make_op(back), {context.output_gradients[0]})};
}

void Pad::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto& x = inputs[0];
  auto& y = outputs[0];
  const auto sources = pad_sources(*this, x.spec.shape);
  const auto strides = x.spec.shape.strides();
  const double constant = to_doubles(value_as(x.spec.dtype)).front();
  std::size_t n = 0;
  for_each_index(y.spec.shape, [&](const Dims& p) {
    std::int64_t q = 0;
    bool inside = true;
    for (std::size_t a = 0; a < p.size(); ++a) {
      const auto source = sources[a][static_cast<std::size_t>(p[a])];
      inside = inside && source >= 0;
      q += source * strides[a];
    }
    y.values[n++] = inside ? x.values[static_cast<std::size_t>(q)] : constant;
  });
}

Pad PadGradient::forward() const {
  Pad pad;
  pad.pads = pads;
  pad.mode = mode;
  return pad;
}

std::vector<TensorSpec> PadGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  require_dtype(kName, inputs, 0, DType::F32);
  const Shape x(input_shape);
  require_shape(kName, inputs, 0, padded_shape(forward(), x));
  return {{DType::F32, x}};
}

void PadGradient::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const Shape& x = outputs[0].spec.shape;
  std::vector<AxisTaps> taps;
  for (const auto& sources : pad_sources(forward(), x)) taps.push_back(copy_taps(sources));
  scatter_taps(taps, x, inputs[0].values, outputs[0].values);
}

ErrorBound PadGradient::error_bound(Specs) const { return {.terms = most_terms(taps())}; }

std::vector<AxisTaps> PadGradient::taps() const {
  std::vector<AxisTaps> axes;
  for (const auto& sources : pad_sources(forward(), Shape(input_shape))) {
    axes.push_back(transposed(copy_taps(sources), input_shape[axes.size()]));
  }
  return axes;
}

void add_pad_ops(OpList& list) {
  list.push_back(make_op(Pad{}));
  list.push_back(make_op(PadGradient{}));
}

}  // namespace triptych
