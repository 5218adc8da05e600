// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv_transpose.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/conv.h"
#include "core/ops/sharding.h"

namespace triptych {
namespace {

/// The entry of an attribute list for lifted axis `axis` (0 height, 1 width), or 0 when not given.
std::int64_t entry(const std::vector<std::int64_t>& list, std::size_t spatial_rank, int axis) {
  const auto i = static_cast<std::size_t>(axis) + spatial_rank;
  if (list.empty() || i < 2) return 0;
  return list[i - 2];
}

void require_length(std::string_view op, std::string_view name,
                    const std::vector<std::int64_t>& list, std::size_t spatial_rank,
                    std::int64_t minimum) {
  if (list.empty()) return;
  if (list.size() == spatial_rank && *std::min_element(list.begin(), list.end()) >= minimum) return;
  throw_invalid(op, fmt::format("{} {} must have {} entries of at least {}", name, list,
                                spatial_rank, minimum));
}

/// Fills the output size (the window's `in`) and the padding of one axis by ONNX's rule.
void resolve_output(std::string_view name, const ConvTransposeAttributes& op,
                    std::size_t spatial_rank, int axis, Window& w) {
  const auto stride = w.stride[axis];
  const auto output_padding = entry(op.output_padding, spatial_rank, axis);
  const auto covered = checked_add(
      checked_add(checked_mul(stride, w.out[axis] - 1), w.extent(axis)), output_padding);
  auto size = entry(op.output_shape, spatial_rank, axis);
  if (size == 0 && op.auto_pad.starts_with("SAME")) size = checked_mul(w.out[axis], stride);
  if (size > 0) {
    w.split_padding(axis, std::max<std::int64_t>(covered - size, 0), op.auto_pad == "SAME_UPPER");
  } else {
    size = covered - checked_add(w.pad_begin[axis], w.pad_end[axis]);
  }
  if (size < 1) {
    throw_invalid(name, fmt::format("pads {} leave nothing of an output of {}", op.pads, covered));
  }
  // More would make a convolution over the output have more positions than x.
  const auto surplus = size - (covered - output_padding) + w.pad_begin[axis] + w.pad_end[axis];
  if (surplus >= stride) {
    throw_invalid(name,
                  fmt::format("output_padding, given or implied by output_shape, is {}; it must be "
                              "below the stride, {}",
                              surplus, stride));
  }
  w.in[axis] = size;
}

}  // namespace

ConvGeometry ConvTransposeAttributes::geometry_for(std::string_view op, const Shape& x,
                                                   const Shape& w) const {
  require_conv_operands(op, *this, group, x, w);
  if (x[1] != w[0]) {
    throw_invalid(op, fmt::format("w has {} input channels, x has {}", w[0], x[1]));
  }
  const auto spatial = spatial_sizes(x);
  require_length(op, "output_padding", output_padding, spatial.size(), 0);
  require_length(op, "output_shape", output_shape, spatial.size(), 1);
  auto window = window_steps(op, *this, spatial_sizes(w));
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    const auto axis = static_cast<int>(i + 2 - spatial.size());
    window.out[axis] = spatial[i];
    resolve_output(op, *this, spatial.size(), axis, window);
  }
  return {.batch = x[0],
          .in_channels = checked_mul(w[1], group),
          .out_channels = x[1],
          .groups = group,
          .window = window};
}

std::vector<TensorSpec> ConvTranspose::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 3);
  for (std::size_t i = 0; i < inputs.size(); ++i) require_dtype(kName, inputs, i, DType::F32);
  const auto g = geometry(inputs[0].shape, inputs[1].shape);
  if (inputs.size() == 3) require_shape(kName, inputs, 2, {g.in_channels});
  return {{DType::F32, image_shape(inputs[0].shape.rank(), g.batch, g.in_channels, g.window.in)}};
}

std::vector<ValueId> ConvTranspose::gradient(const GradientContext& context) const {
  const auto dy = context.output_gradients[0];
  const auto g = geometry(context.emitter.spec(context.inputs[0]).shape,
                          context.emitter.spec(context.inputs[1]).shape);
  const auto attributes = explicit_attributes(g.window, context.emitter.spec(dy).shape.rank());
  std::vector<ValueId> gradients(context.inputs.size());
  // The gradient of x comes last, because the values read of x are free by then.
  if (context.wanted[1]) {
    ConvWeightGradient op;
    static_cast<WindowAttributes&>(op) = attributes;
    op.group = group;
    gradients[1] = context.emitter.emit_one(make_op(op), {dy, context.inputs[0]});
  }
  if (gradients.size() == 3 && context.wanted[2]) {
    gradients[2] = channel_sum(context.emitter, dy);
  }
  if (context.wanted[0]) {
    Conv op;
    static_cast<WindowAttributes&>(op) = attributes;
    op.group = group;
    gradients[0] = context.emitter.emit_one(make_op(op), {dy, context.inputs[1]});
  }
  return gradients;
}

double ConvTranspose::flops(Specs inputs, Specs outputs) const {
  const auto bias = inputs.size() == 3 ? outputs[0].shape.elements() : 0;
  return 2 * geometry(inputs[0].shape, inputs[1].shape).macs() + static_cast<double>(bias);
}

std::vector<Sharding> ConvTranspose::shardings(Specs inputs, Specs, std::int64_t) const {
  if (group != 1) return {};
  return product_shardings(
      {.a_rows = -1, .a_sum = 1, .b_columns = 1, .b_sum = 0, .y_rows = -1, .y_columns = 1},
      inputs.size() > 2);
}

void ConvTranspose::reference(std::span<const RefTensor> inputs,
                              std::span<RefTensor> outputs) const {
  // The geometry is that of the convolution with this operator as input gradient: its y is our x.
  convolve_transposed(geometry(inputs[0].spec.shape, inputs[1].spec.shape), inputs[0].values,
                      inputs[1].values, outputs[0].values);
  if (inputs.size() == 3) add_channel_bias(outputs[0], inputs[2]);
}

ErrorBound ConvTranspose::error_bound(Specs inputs) const {
  const auto g = geometry(inputs[0].shape, inputs[1].shape);
  return {.terms = static_cast<double>(g.group_out() * g.taps() + 1)};
}

void add_conv_transpose_ops(OpList& list) { list.push_back(make_op(ConvTranspose{})); }

}  // namespace triptych
