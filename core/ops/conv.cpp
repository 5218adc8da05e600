// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/ops/conv_transpose.h"
#include "core/ops/formula.h"
#include "core/ops/sharding.h"

namespace triptych {
namespace {

/// The gradient of a convolution's input: the transposed convolution that gives x's shape again.
ConvTranspose input_gradient(const ConvGeometry& geometry, std::int64_t rank) {
  const auto& window = geometry.window;
  ConvTranspose op;
  static_cast<WindowAttributes&>(op) = explicit_attributes(window, rank);
  op.group = geometry.groups;
  for (auto axis = static_cast<int>(4 - rank); axis < 2; ++axis) {
    const auto padded = window.in[axis] + window.pad_begin[axis] + window.pad_end[axis];
    op.output_padding.push_back((padded - window.extent(axis)) % window.stride[axis]);
  }
  return op;
}

}  // namespace

ConvGeometry Conv::geometry(const Shape& x, const Shape& w) const {
  return conv_geometry(kName, *this, group, x, w);
}

std::vector<TensorSpec> Conv::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 3);
  for (std::size_t i = 0; i < inputs.size(); ++i) require_dtype(kName, inputs, i, DType::F32);
  if (!activation.empty() && activation != "relu") {
    throw_invalid(kName,
                  fmt::format("activation is \"{}\"; it must be empty or \"relu\"", activation));
  }
  const auto g = geometry(inputs[0].shape, inputs[1].shape);
  if (inputs.size() == 3) require_shape(kName, inputs, 2, {g.out_channels});
  return {{DType::F32, image_shape(inputs[0].shape.rank(), g.batch, g.out_channels, g.window.out)}};
}

std::vector<ValueId> Conv::gradient(const GradientContext& context) const {
  const auto dy = context.output_gradients[0];
  const auto rank = context.emitter.spec(dy).shape.rank();
  const auto g = geometry(context.emitter.spec(context.inputs[0]).shape,
                          context.emitter.spec(context.inputs[1]).shape);
  std::vector<ValueId> gradients(context.inputs.size());
  // The gradient of x comes last, because the values read of x are free by then.
  if (context.wanted[1]) {
    ConvWeightGradient op;
    static_cast<WindowAttributes&>(op) = explicit_attributes(g.window, rank);
    op.group = group;
    gradients[1] = context.emitter.emit_one(make_op(op), {context.inputs[0], dy});
  }
  if (gradients.size() == 3 && context.wanted[2]) {
    gradients[2] = channel_sum(context.emitter, dy);
  }
  if (context.wanted[0]) {
    gradients[0] =
        context.emitter.emit_one(make_op(input_gradient(g, rank)), {dy, context.inputs[1]});
  }
  return gradients;
}

double Conv::flops(Specs inputs, Specs outputs) const {
  const auto bias = inputs.size() == 3 ? outputs[0].shape.elements() : 0;
  return 2 * geometry(inputs[0].shape, inputs[1].shape).macs() + static_cast<double>(bias);
}

std::vector<Sharding> Conv::shardings(Specs inputs, Specs, std::int64_t) const {
  if (group != 1) return {};
  return product_shardings(
      {.a_rows = -1, .a_sum = 1, .b_columns = 0, .b_sum = 1, .y_rows = -1, .y_columns = 1},
      inputs.size() > 2, !activation.empty());
}

void Conv::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  auto& y = outputs[0].values;
  convolve(geometry(inputs[0].spec.shape, inputs[1].spec.shape), inputs[0].values, inputs[1].values,
           y);
  if (inputs.size() == 3) add_channel_bias(outputs[0], inputs[2]);
  if (activation == "relu") {
    for (auto& value : y) value = std::max(value, 0.0);
  }
}

ErrorBound Conv::error_bound(Specs inputs) const {
  const auto g = geometry(inputs[0].shape, inputs[1].shape);
  return {.terms = static_cast<double>(g.group_in() * g.taps() + 1)};
}

ConvGeometry ConvWeightGradient::geometry(const Shape& x, const Shape& dy) const {
  require_image(kName, "x", x);
  require_image(kName, "dy", dy);
  if (group < 1 || x[1] % group != 0) {
    throw_invalid(kName, fmt::format("group {} does not divide x's {} channels", group, x[1]));
  }
  if (static_cast<std::int64_t>(kernel_shape.size()) != x.rank() - 2) {
    throw_invalid(kName,
                  fmt::format("kernel_shape {} must have {} entries", kernel_shape, x.rank() - 2));
  }
  Dims w = {dy[1], x[1] / group};
  w.insert(w.end(), kernel_shape.begin(), kernel_shape.end());
  const auto g = conv_geometry(kName, *this, group, x, Shape(std::move(w)));
  const auto wanted = image_shape(x.rank(), g.batch, g.out_channels, g.window.out);
  if (dy != wanted) {
    throw_invalid(kName, fmt::format("dy is {}; for x {} it must be {}", to_string(dy),
                                     to_string(x), to_string(wanted)));
  }
  return g;
}

std::vector<TensorSpec> ConvWeightGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  require_dtype(kName, inputs, 0, DType::F32);
  require_dtype(kName, inputs, 1, DType::F32);
  const auto g = geometry(inputs[0].shape, inputs[1].shape);
  return {{DType::F32,
           image_shape(inputs[0].shape.rank(), g.out_channels, g.group_in(), g.window.kernel)}};
}

double ConvWeightGradient::flops(Specs inputs, Specs) const {
  return 2 * geometry(inputs[0].shape, inputs[1].shape).macs();
}

std::vector<Sharding> ConvWeightGradient::shardings(Specs, Specs, std::int64_t) const {
  if (group != 1) return {};
  return {{.inputs = {Sharding::kWhole, 1}, .outputs = {0}, .where = Sharding::Where::ResultIsCut},
          {.inputs = {1, Sharding::kWhole}, .outputs = {1}, .where = Sharding::Where::ResultIsCut}};
}

void ConvWeightGradient::reference(std::span<const RefTensor> inputs,
                                   std::span<RefTensor> outputs) const {
  const auto* x = inputs[0].values.data();
  const auto* dy = inputs[1].values.data();
  auto& dw = outputs[0].values;
  std::fill(dw.begin(), dw.end(), 0.0);
  for_each_mac(geometry(inputs[0].spec.shape, inputs[1].spec.shape),
               [&](auto yi, auto xi, auto wi) { dw.data()[wi] += dy[yi] * x[xi]; });
}

ErrorBound ConvWeightGradient::error_bound(Specs inputs) const {
  const auto g = geometry(inputs[0].shape, inputs[1].shape);
  return {.terms = static_cast<double>(g.batch * g.out_plane())};
}

void add_channel_bias(RefTensor& y, const RefTensor& bias) {
  const auto plane =
      static_cast<std::size_t>(y.spec.shape.elements_between(2, y.spec.shape.rank()));
  const auto channels = bias.values.size();
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    y.values[i] += bias.values[i / plane % channels];
  }
}

ValueId channel_sum(OpEmitter& emitter, ValueId x) {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < emitter.spec(x).shape.rank(); ++axis) {
    if (axis != 1) axes.push_back(axis);
  }
  return Formula(emitter).sum(x, std::move(axes), false);
}

void add_conv_ops(OpList& list) {
  list.push_back(make_op(Conv{}));
  list.push_back(make_op(ConvWeightGradient{}));
}

}  // namespace triptych
