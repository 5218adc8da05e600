// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pool.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "core/base/reduction.h"
#include "core/ops/reduce.h"
#include "core/ops/sharding.h"

namespace triptych {
namespace {

TensorSpec pooled(const TensorSpec& x, const Window& window) {
  return {x.dtype, image_shape(x.shape.rank(), x.shape[0], x.shape[1], window.out)};
}

void require_gradient_shape(std::string_view op, const TensorSpec& dy, const TensorSpec& y) {
  if (dy == y) return;
  throw_invalid(op, fmt::format("dy is {}; it must be {}", to_string(dy), to_string(y)));
}

/// `Gradient` with the attributes that it shares with `op`.
template <class Gradient, class Pool>
Gradient gradient_of(const Pool& op) {
  Gradient gradient;
  static_cast<PoolAttributes&>(gradient) = op;
  return gradient;
}

/// Calls visit(y_index, x_index, tap) for every plane, output and element of its window, in order.
template <class Visitor>
void for_each_pooled(const Shape& x, const Window& window, Visitor&& visit) {
  const auto in_plane = window.in[0] * window.in[1];
  const auto out_plane = window.out[0] * window.out[1];
  for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for_each_tap(window, [&](auto p, auto q, auto tap) {
      visit(static_cast<std::size_t>(plane * out_plane + p),
            static_cast<std::size_t>(plane * in_plane + q), tap);
    });
  }
}

/// An element of x: its index, and its number in a window.
struct Maximum {
  std::size_t index = std::numeric_limits<std::size_t>::max();
  std::int64_t tap = -1;
};

/// Per output of a max pooling, the element of x that the window's maximum is.
std::vector<Maximum> maxima(const RefTensor& x, const Window& window) {
  const auto outputs = pooled(x.spec, window).shape.elements();
  std::vector<Maximum> best(static_cast<std::size_t>(outputs));
  for_each_pooled(x.spec.shape, window, [&](auto yi, auto xi, auto tap) {
    auto& most = best[yi];
    if (most.tap < 0 || outranks(x.values[xi], x.values[most.index])) most = {xi, tap};
  });
  return best;
}

/// One operation per element of every window.
double window_flops(const Window& window, Specs outputs) {
  return static_cast<double>(outputs[0].shape.elements()) * static_cast<double>(window.taps());
}

/// Per plane position p of y, the divisor of an average there.
std::vector<double> divisors(const Window& window, bool count_include_pad) {
  std::vector<double> result;
  for (std::int64_t row = 0; row < window.out[0]; ++row) {
    for (std::int64_t column = 0; column < window.out[1]; ++column) {
      const auto count = average_pool_divisor(window, count_include_pad, row, column);
      result.push_back(static_cast<double>(count));
    }
  }
  return result;
}

}  // namespace

Window pool_window(std::string_view op, const PoolAttributes& attributes, const Shape& x) {
  require_image(op, "x", x);
  const auto w = resolve_window(op, attributes, spatial_sizes(x), attributes.kernel_shape,
                                attributes.ceil_mode);
  for (int axis = 0; axis < 2; ++axis) {
    const bool padded = w.pad_begin[axis] > 0 || w.pad_end[axis] > 0;
    const auto pad = std::max(w.pad_begin[axis], w.pad_end[axis]);
    if (pad >= w.extent(axis) || (padded && w.dilation[axis] > w.in[axis])) {
      throw_invalid(op, fmt::format("pads {} and dilations {} allow a window wholly in the padding "
                                    "of x, {}; use less",
                                    attributes.pads, attributes.dilations, to_string(x)));
    }
  }
  return w;
}

std::vector<TensorSpec> MaxPool::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  if (inputs[0].dtype == DType::Bool) throw_invalid(kName, "x is bool; it must be a number");
  return {pooled(inputs[0], window(inputs[0].shape))};
}

std::vector<ValueId> MaxPool::gradient(const GradientContext& context) const {
  return {context.emitter.emit_one(make_op(gradient_of<MaxPoolGradient>(*this)),
                                   {context.inputs[0], context.output_gradients[0]})};
}

double MaxPool::flops(Specs inputs, Specs outputs) const {
  return window_flops(window(inputs[0].shape), outputs);
}

std::vector<Sharding> MaxPool::shardings(Specs inputs, Specs outputs, std::int64_t) const {
  return channel_shardings(inputs, outputs);
}

void MaxPool::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto best = maxima(inputs[0], window(inputs[0].spec.shape));
  for (std::size_t i = 0; i < best.size(); ++i) {
    outputs[0].values[i] = inputs[0].values[best[i].index];
  }
}

std::vector<TensorSpec> MaxPoolGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  require_dtype(kName, inputs, 0, DType::F32);
  require_gradient_shape(kName, inputs[1], pooled(inputs[0], window(inputs[0].shape)));
  return {inputs[0]};
}

std::vector<Sharding> MaxPoolGradient::shardings(Specs inputs, Specs outputs, std::int64_t) const {
  return channel_shardings(inputs, outputs);
}

void MaxPoolGradient::reference(std::span<const RefTensor> inputs,
                                std::span<RefTensor> outputs) const {
  const auto best = maxima(inputs[0], window(inputs[0].spec.shape));
  auto& dx = outputs[0].values;
  std::fill(dx.begin(), dx.end(), 0.0);
  for (std::size_t i = 0; i < best.size(); ++i) dx[best[i].index] += inputs[1].values[i];
}

ErrorBound MaxPoolGradient::error_bound(Specs inputs) const {
  // Absolute inputs have their maxima elsewhere, so the magnitude is no bound: with |dy| <= 1, up
  // to `taps` values of size 1 are added.
  const auto taps = static_cast<double>(window(inputs[0].shape).taps());
  return {.absolute = 0x1p-24 * taps * (taps - 1)};
}

std::vector<TensorSpec> MaxPoolWithIndex::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  require_dtype(kName, inputs, 0, DType::F32);
  const auto w = window(inputs[0].shape);
  if (w.taps() > kMostTaps) {
    throw_invalid(kName, fmt::format("kernel_shape {} has {} taps; an index numbers up to {}",
                                     kernel_shape, w.taps(), kMostTaps));
  }
  const auto y = pooled(inputs[0], w);
  return {y, {DType::U8, y.shape}};
}

double MaxPoolWithIndex::flops(Specs inputs, Specs outputs) const {
  return window_flops(window(inputs[0].shape), outputs);
}

void MaxPoolWithIndex::reference(std::span<const RefTensor> inputs,
                                 std::span<RefTensor> outputs) const {
  const auto best = maxima(inputs[0], window(inputs[0].spec.shape));
  for (std::size_t i = 0; i < best.size(); ++i) {
    outputs[0].values[i] = inputs[0].values[best[i].index];
    outputs[1].values[i] = static_cast<double>(best[i].tap);
  }
}

std::vector<TensorSpec> MaxPoolIndexGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 3);
  require_dtype(kName, inputs, 0, DType::U8);
  const TensorSpec x = {DType::F32, Shape(input_shape)};
  const auto y = pooled(x, window());
  if (inputs[0].shape != y.shape) {
    throw_invalid(kName, fmt::format("index is {}; its shape must be dy's, {}",
                                     to_string(inputs[0]), to_string(y.shape)));
  }
  require_gradient_shape(kName, inputs[1], y);
  if (inputs.size() > 2 && inputs[2] != x) {
    throw_invalid(kName, fmt::format("the other gradient is {}; it must be {}, as x",
                                     to_string(inputs[2]), to_string(x)));
  }
  return {x};
}

void MaxPoolIndexGradient::reference(std::span<const RefTensor> inputs,
                                     std::span<RefTensor> outputs) const {
  auto& dx = outputs[0].values;
  if (inputs.size() > 2) {
    dx = inputs[2].values;
  } else {
    std::fill(dx.begin(), dx.end(), 0.0);
  }
  for_each_pooled(Shape(input_shape), window(), [&](auto yi, auto xi, auto tap) {
    if (inputs[0].values[yi] == static_cast<double>(tap)) dx[xi] += inputs[1].values[yi];
  });
}

ErrorBound MaxPoolIndexGradient::error_bound(Specs) const {
  return {.terms = static_cast<double>(window().taps() + 1)};
}

std::vector<TensorSpec> AveragePool::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  require_dtype(kName, inputs, 0, DType::F32);
  return {pooled(inputs[0], window(inputs[0].shape))};
}

std::vector<ValueId> AveragePool::gradient(const GradientContext& context) const {
  auto op = gradient_of<AveragePoolGradient>(*this);
  op.count_include_pad = count_include_pad;
  op.input_shape = context.emitter.spec(context.inputs[0]).shape.dims();
  return {context.emitter.emit_one(make_op(std::move(op)), {context.output_gradients[0]})};
}

double AveragePool::flops(Specs inputs, Specs outputs) const {
  return window_flops(window(inputs[0].shape), outputs);
}

void AveragePool::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto w = window(inputs[0].spec.shape);
  const auto divisor = divisors(w, count_include_pad);
  auto& y = outputs[0].values;
  std::fill(y.begin(), y.end(), 0.0);
  for_each_pooled(inputs[0].spec.shape, w, [&](auto yi, auto xi, auto) {
    y[yi] += inputs[0].values[xi] / divisor[yi % divisor.size()];
  });
}

ErrorBound AveragePool::error_bound(Specs inputs) const {
  return {.terms = static_cast<double>(window(inputs[0].shape).taps())};
}

std::int64_t average_pool_divisor(const Window& window, bool count_include_pad, std::int64_t row,
                                  std::int64_t column) {
  const std::int64_t position[] = {row, column};
  std::int64_t count = 1;
  for (int axis = 0; axis < 2; ++axis) {
    const auto begin = position[axis] * window.stride[axis] - window.pad_begin[axis];
    // With ceil_mode a window may hang over even the padding. Elements there never count.
    const auto low = count_include_pad ? -window.pad_begin[axis] : 0;
    const auto high = window.in[axis] + (count_include_pad ? window.pad_end[axis] : 0);
    std::int64_t inside = 0;
    for (std::int64_t tap = 0; tap < window.kernel[axis]; ++tap) {
      const auto at = begin + tap * window.dilation[axis];
      inside += at >= low && at < high ? 1 : 0;
    }
    count *= inside;
  }
  return count;
}

std::vector<TensorSpec> AveragePoolGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  const TensorSpec x = {DType::F32, Shape(input_shape)};
  require_gradient_shape(kName, inputs[0], pooled(x, window()));
  return {x};
}

void AveragePoolGradient::reference(std::span<const RefTensor> inputs,
                                    std::span<RefTensor> outputs) const {
  const auto divisor = divisors(window(), count_include_pad);
  auto& dx = outputs[0].values;
  std::fill(dx.begin(), dx.end(), 0.0);
  for_each_pooled(Shape(input_shape), window(), [&](auto yi, auto xi, auto) {
    dx[xi] += inputs[0].values[yi] / divisor[yi % divisor.size()];
  });
}

ErrorBound AveragePoolGradient::error_bound(Specs) const {
  return {.terms = static_cast<double>(window().taps())};
}

std::vector<TensorSpec> GlobalAveragePool::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  require_dtype(kName, inputs, 0, DType::F32);
  const auto& x = inputs[0].shape;
  if (x.rank() < 3 || x.elements() == 0) {
    throw_invalid(kName,
                  fmt::format("x is {}; it must be [N, C, ...] with no size 0", to_string(x)));
  }
  Dims dims(static_cast<std::size_t>(x.rank()), 1);
  std::copy_n(x.dims().begin(), 2, dims.begin());
  return {{DType::F32, Shape(std::move(dims))}};
}

std::vector<ValueId> GlobalAveragePool::expand(OpEmitter& emitter, Values inputs) const {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 2; axis < emitter.spec(inputs[0]).shape.rank(); ++axis) {
    axes.push_back(axis);
  }
  return {emitter.emit_one(make_op(Reduce(ReduceKind::Mean, std::move(axes))), {inputs[0]})};
}

void GlobalAveragePool::reference(std::span<const RefTensor> inputs,
                                  std::span<RefTensor> outputs) const {
  auto& y = outputs[0].values;
  const auto plane = inputs[0].values.size() / y.size();
  std::fill(y.begin(), y.end(), 0.0);
  for (std::size_t i = 0; i < inputs[0].values.size(); ++i) y[i / plane] += inputs[0].values[i];
  for (auto& value : y) value /= static_cast<double>(plane);
}

ErrorBound GlobalAveragePool::error_bound(Specs inputs) const {
  const auto& x = inputs[0].shape;
  return {.terms = static_cast<double>(x.elements_between(2, x.rank()))};
}

void add_pool_ops(OpList& list) {
  list.push_back(make_op(MaxPool{}));
  list.push_back(make_op(MaxPoolGradient{}));
  list.push_back(make_op(MaxPoolWithIndex{}));
  list.push_back(make_op(MaxPoolIndexGradient{}));
  list.push_back(make_op(AveragePool{}));
  list.push_back(make_op(AveragePoolGradient{}));
  list.push_back(make_op(GlobalAveragePool{}));
}

}  // namespace triptych
