// Convolution. Triptych has it in one and two dimensions. In three, the depth's taps become
// channels of a convolution in two, or, transposed, a sum of those of each depth.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/onnx/node_import.h"
#include "core/onnx/translations/window.h"
#include "core/ops/concat.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/pad.h"

namespace triptych::onnx {
namespace {

/// x, w and the bias, if there is one, in float32.
std::vector<ValueId> operands(const NodeImport& n) {
  std::vector<ValueId> result = {n.f32(0), n.f32(1)};
  if (n.has(2)) result.push_back(n.f32(2));
  return result;
}

template <class Op>
void set_window(Op& op, const WindowAttributes& window) {
  static_cast<WindowAttributes&>(op) = window;
}

/// Zeros before and behind axis `axis` of x.
ValueId padded(const NodeImport& n, ValueId x, std::int64_t axis, std::int64_t before,
               std::int64_t behind) {
  if (before == 0 && behind == 0) return x;
  const auto rank = n.graph.spec(x).shape.rank();
  Pad op;
  op.pads.assign(static_cast<std::size_t>(2 * rank), 0);
  op.pads[static_cast<std::size_t>(axis)] = before;
  op.pads[static_cast<std::size_t>(rank + axis)] = behind;
  return n.apply(make_op(std::move(op)), {x});
}

/// [N, C, D, H, W] as images [N D', C kd, H, W] that hold, for each output depth, its taps' depths.
ValueId depths_as_channels(const NodeImport& n, ValueId x, const WindowAttributes& window,
                           std::int64_t taps) {
  x = padded(n, x, 2, window.pads[0], window.pads[3]);
  const Shape s = n.graph.spec(x).shape;
  const auto dilation = window.dilations[0], stride = window.strides[0];
  const auto room = s[2] - (taps - 1) * dilation - 1;
  if (room < 0) n.broken("the kernel is larger than the padded input");
  const auto outputs = room / stride + 1;
  std::vector<ValueId> depths;
  for (std::int64_t t = 0; t < taps; ++t) {
    const auto first = t * dilation;
    const auto slice = n.slice(x, 2, first, first + (outputs - 1) * stride + 1, stride);
    depths.push_back(n.reshape(slice, {s[0], s[1], 1, outputs, s[3], s[4]}));
  }
  Concat concat;
  concat.axis = 2;
  const auto all = n.apply(make_op(concat), depths);  // [N, C, kd, D', H, W]
  return n.reshape(n.transpose(all, {0, 3, 1, 2, 4, 5}), {s[0] * outputs, s[1] * taps, s[3], s[4]});
}

void require_kernel(const NodeImport& n, const WindowAttributes& window, const Dims& kernel) {
  if (!window.kernel_shape.empty() && window.kernel_shape != kernel) {
    n.broken("kernel_shape is not that of the weight");
  }
}

/// A kernel of one element that visits every position.
bool is_pointwise(const WindowAttributes& window, const Dims& kernel) {
  const auto are = [](const auto& list, std::int64_t value) {
    return std::ranges::all_of(list, [=](auto each) { return each == value; });
  };
  return are(kernel, 1) && are(window.strides, 1) && are(window.pads, 0);
}

ValueId convolve_volume(const NodeImport& n, Conv op, const std::vector<ValueId>& in) {
  const Shape x = n.graph.spec(in[0]).shape, w = n.graph.spec(in[1]).shape;
  const Dims sizes = {x[2], x[3], x[4]}, kernel = {w[2], w[3], w[4]};
  require_kernel(n, op, kernel);
  const auto window = resolved_padding(n, op, sizes, kernel);
  if (is_pointwise(window, kernel)) {  // of images whose depths are further rows
    auto images = in;
    images[0] = n.reshape(in[0], {x[0], x[1], x[2] * x[3], x[4]});
    images[1] = n.reshape(in[1], {w[0], w[1], 1, 1});
    set_window(op, {});
    return n.reshape(n.apply(make_op(op), images), {x[0], w[0], x[2], x[3], x[4]});
  }
  auto images = in;
  images[0] = depths_as_channels(n, in[0], window, kernel[0]);
  images[1] = n.reshape(in[1], {w[0], w[1] * w[2], w[3], w[4]});
  set_window(op, window_part(window, 1, 3));
  const auto y = n.apply(make_op(op), images);
  const Shape s = n.graph.spec(y).shape;
  const auto volumes = n.reshape(y, {x[0], s[0] / x[0], s[1], s[2], s[3]});
  return n.transpose(volumes, {0, 2, 1, 3, 4});
}

void require_images(const NodeImport& n) {
  const auto rank = n.rank(0);
  n.refuse_unless(rank >= 3 && rank <= kVolume,
                  fmt::format("input 0 has {} dimensions; 3, 4 and 5 are supported", rank));
  if (n.rank(1) != rank) n.broken("the weight has another number of dimensions than the input");
  if (n.shape(0).elements() == 0 || n.shape(1).elements() == 0) n.broken("an operand is empty");
}

std::vector<ValueId> conv(NodeImport& n) {
  Conv op;
  set_window(op, window_attributes(n));
  op.group = n.integer("group", 1);
  require_images(n);
  if (n.rank(0) == kVolume) return {n.like(0, convolve_volume(n, op, operands(n)))};
  return {n.like(0, n.apply(make_op(op), operands(n)))};
}

/// Depths of the weight that reach different output depths, as channels of one convolution. `op`
/// and `images` are those of spread_volume.
ValueId spread_apart(const NodeImport& n, const ConvTranspose& op, ValueId images,
                     const std::vector<ValueId>& in) {
  const Shape x = n.graph.spec(in[0]).shape, w = n.graph.spec(in[1]).shape;
  std::vector<ValueId> operands = {images, n.reshape(in[1], {w[0], w[1] * w[2], w[3], w[4]})};
  if (in.size() > 2) {
    const auto channels = n.graph.spec(in[2]).shape.elements();
    Concat repeat;
    repeat.axis = 1;
    const std::vector<ValueId> copies(static_cast<std::size_t>(w[2]),
                                      n.reshape(in[2], {channels, 1}));
    operands.push_back(n.reshape(n.apply(make_op(repeat), copies), {channels * w[2]}));
  }
  const auto y = n.apply(make_op(op), operands);
  const Shape s = n.graph.spec(y).shape;
  const auto channels = s[1] / w[2];
  const auto volumes = n.reshape(y, {x[0], x[2], channels, w[2], s[2], s[3]});
  return n.reshape(n.transpose(volumes, {0, 2, 1, 3, 4, 5}),
                   {x[0], channels, x[2] * w[2], s[2], s[3]});
}

/// Each depth of the weight spreads the images of all input depths over the output depths that it
/// reaches. Overlapping contributions are summed.
ValueId spread_volume(const NodeImport& n, ConvTranspose op, const std::vector<ValueId>& in) {
  const Shape x = n.graph.spec(in[0]).shape, w = n.graph.spec(in[1]).shape;
  require_kernel(n, op, {w[2], w[3], w[4]});
  const auto window = filled_window(n, op, 3);
  auto extra = op.output_padding;
  if (extra.empty()) extra.assign(3, 0);
  if (extra.size() != 3) n.broken("output_padding does not fit its dimensions");
  n.refuse_unless(op.output_shape.empty() && op.auto_pad == "NOTSET",
                  "output_shape and auto_pad are not supported in three dimensions");
  set_window(op, window_part(window, 1, 3));
  op.output_padding = {extra[1], extra[2]};
  const auto images =
      n.reshape(n.transpose(in[0], {0, 2, 1, 3, 4}), {x[0] * x[2], x[1], x[3], x[4]});
  const auto stride = window.strides[0], dilation = window.dilations[0];
  const auto depths = (x[2] - 1) * stride + (w[2] - 1) * dilation + 1 + extra[0];
  const auto behind = depths - window.pads[3];
  if (window.pads[0] >= behind) n.broken("nothing is left between the pads");
  if (stride == w[2] && dilation == 1 && extra[0] == 0) {
    return n.slice(spread_apart(n, op, images, in), 2, window.pads[0], behind);
  }
  ValueId sum;
  for (std::int64_t t = 0; t < w[2]; ++t) {
    const auto slice = n.reshape(n.slice(in[1], 2, t, t + 1), {w[0], w[1], w[3], w[4]});
    const auto y = n.apply(make_op(op), {images, slice});
    const Shape s = n.graph.spec(y).shape;
    // Zeros between the depths, then before and behind them.
    auto spread = n.reshape(y, {x[0], x[2], 1, s[1], s[2], s[3]});
    spread = padded(n, spread, 2, 0, stride - 1);
    spread = n.reshape(spread, {x[0], x[2] * stride, s[1], s[2], s[3]});
    spread = n.slice(spread, 1, 0, (x[2] - 1) * stride + 1);
    const auto first = t * dilation;
    spread = padded(n, spread, 1, first, depths - first - (x[2] - 1) * stride - 1);
    sum = t == 0 ? spread : n.f.add(sum, spread);
  }
  auto y = n.transpose(n.slice(sum, 1, window.pads[0], behind), {0, 2, 1, 3, 4});
  if (in.size() > 2) {
    y = n.f.add(y, n.reshape(in[2], {n.graph.spec(in[2]).shape.elements(), 1, 1, 1}));
  }
  return y;
}

std::vector<ValueId> conv_transpose(NodeImport& n) {
  ConvTranspose op;
  set_window(op, window_attributes(n));
  op.group = n.integer("group", 1);
  op.output_padding = n.integers("output_padding");
  op.output_shape = n.integers("output_shape");
  require_range(n, "output_padding", op.output_padding, 0);
  require_range(n, "output_shape", op.output_shape, 1);
  require_images(n);
  // Some write the whole shape, with batch and channels.
  const auto rank = static_cast<std::size_t>(n.rank(0));
  if (op.output_shape.size() == rank) {
    op.output_shape.erase(op.output_shape.begin(), op.output_shape.begin() + 2);
  }
  if (n.rank(0) == kVolume) return {n.like(0, spread_volume(n, op, operands(n)))};
  return {n.like(0, n.apply(make_op(op), operands(n)))};
}

}  // namespace

void add_conv_translations(TranslationList& list) {
  list.insert(list.end(), {{"Conv", conv}, {"ConvTranspose", conv_transpose}});
}

}  // namespace triptych::onnx
