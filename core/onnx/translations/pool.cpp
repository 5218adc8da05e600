// Pooling. In three dimensions the depth is pooled after height and width: a maximum of maxima, a
// mean of means.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <limits>

#include "core/onnx/node_import.h"
#include "core/onnx/translations/window.h"
#include "core/ops/gather.h"
#include "core/ops/pad.h"
#include "core/ops/pool.h"
#include "core/ops/reduce.h"
#include "core/ops/slice.h"
#include "core/ops/where.h"

namespace triptych::onnx {
namespace {

// Places of the maxima of a pooling, and values put back to such places.

/// x with the window's padding filled with the lowest value, large enough for every window.
ValueId padded(const NodeImport& n, const Window& w, ValueId x) {
  Pad pad;
  pad.pads.assign(8, 0);
  pad.value = -std::numeric_limits<float>::infinity();
  for (std::size_t a = 0; a < 2; ++a) {
    const auto reach = (w.out[a] - 1) * w.stride[a] + w.extent(static_cast<int>(a));
    pad.pads[2 + a] = w.pad_begin[a];
    pad.pads[6 + a] = std::max<std::int64_t>(reach - w.in[a] - w.pad_begin[a], 0);
  }
  return n.apply(make_op(std::move(pad)), {x});
}

/// The elements that tap (row, column) of every window meets.
ValueId tap(const NodeImport& n, const Window& w, ValueId x, const std::int64_t (&at)[2]) {
  Slice slice;
  slice.axes = {2, 3};
  for (int a = 0; a < 2; ++a) {
    const auto first = at[a] * w.dilation[a];
    slice.starts.push_back(first);
    slice.ends.push_back(first + (w.out[a] - 1) * w.stride[a] + 1);
    slice.steps.push_back(w.stride[a]);
  }
  return n.apply(make_op(std::move(slice)), {x});
}

/// The place in its plane that tap (row, column) of each window meets: [1, 1, rows, columns].
ValueId places(const NodeImport& n, const Window& w, bool column_major,
               const std::int64_t (&at)[2]) {
  Tensor tensor(TensorSpec{DType::I64, {1, 1, w.out[0], w.out[1]}});
  auto place = tensor.as<std::int64_t>().begin();
  for (std::int64_t y = 0; y < w.out[0]; ++y) {
    for (std::int64_t x = 0; x < w.out[1]; ++x) {
      const auto row = y * w.stride[0] - w.pad_begin[0] + at[0] * w.dilation[0];
      const auto column = x * w.stride[1] - w.pad_begin[1] + at[1] * w.dilation[1];
      *place++ = column_major ? column * w.in[0] + row : row * w.in[1] + column;
    }
  }
  return n.graph.constant(std::move(tensor));
}

/// Where each plane begins: [N, C, 1, 1].
ValueId plane_starts(const NodeImport& n, const Shape& x) {
  Tensor tensor(TensorSpec{DType::I64, {x[0], x[1], 1, 1}});
  const auto starts = tensor.as<std::int64_t>();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    starts[i] = static_cast<std::int64_t>(i) * x[2] * x[3];
  }
  return n.graph.constant(std::move(tensor));
}

/// For each output of a MaxPool of images the place of its maximum in the whole input, the first of
/// equal ones. `column_major` counts height before width within a plane.
ValueId pool_indices(const NodeImport& n, const MaxPool& op, ValueId x, bool column_major) {
  const Shape shape = n.graph.spec(x).shape;
  n.refuse_unless(shape.rank() == 4 && is_floating(n.graph.spec(x).dtype),
                  "output 1 (Indices) of what is no image of floats");
  const auto w = op.window(shape);
  const auto image = padded(n, w, x);
  ValueId most, where;
  for (std::int64_t row = 0; row < w.kernel[0]; ++row) {
    for (std::int64_t column = 0; column < w.kernel[1]; ++column) {
      const std::int64_t at[2] = {row, column};
      const auto values = tap(n, w, image, at), here = places(n, w, column_major, at);
      if (!most.valid()) {
        most = values;
        const auto zeros = n.filled({DType::I64, n.graph.spec(values).shape}, 0);
        where = n.f.add(zeros, here);
        continue;
      }
      const auto is_number = n.f.apply(BinaryKind::Equal, values, values);
      const auto more = n.f.apply(BinaryKind::Or, n.f.apply(BinaryKind::Greater, values, most),
                                  n.f.apply(UnaryKind::Not, is_number));  // MaxPool's rule
      most = n.f.select(more, values, most);
      where = n.f.select(more, here, where);
    }
  }
  return n.f.add(where, plane_starts(n, shape));
}

template <class Op>
Op with_window(Op op, const WindowAttributes& window) {
  static_cast<WindowAttributes&>(op) = window;
  return op;
}

/// A kernel may be larger than its image by so much, and a kernel of the image's size more.
constexpr std::int64_t kKernelBeyondImage = 1024;

/// Pads are less than the kernel, so that every window meets the input, and the kernel is not so
/// large that nearly all of it lies beyond.
void require_meeting(const NodeImport& n, const WindowAttributes& window, const Shape& x) {
  const auto axes = window.kernel_shape.size();
  for (std::size_t a = 0; a < axes; ++a) {
    if (window.kernel_shape[a] > 2 * x.dims()[2 + a] + kKernelBeyondImage) {
      n.broken("the kernel is far larger than the image");
    }
  }
  for (std::size_t i = 0; i < window.pads.size(); ++i) {
    const auto a = i % axes;
    const auto dilation = window.dilations.size() == axes ? window.dilations[a] : 1;
    const auto extent = (window.kernel_shape[a] - 1) * dilation + 1;
    if (window.pads[i] >= extent) n.broken("pads must be smaller than the kernel");
  }
}

/// `op` over height and width of [N, C, D, H, W], then over its depth.
template <class Op>
ValueId pool_volume(const NodeImport& n, const Op& op, ValueId x) {
  const Shape s = n.graph.spec(x).shape;
  const auto window = resolved_padding(n, op, {s[2], s[3], s[4]}, op.kernel_shape);
  const auto planes = n.apply(make_op(with_window(op, window_part(window, 1, 3))),
                              {n.reshape(x, {s[0], s[1] * s[2], s[3], s[4]})});
  const Shape p = n.graph.spec(planes).shape;
  auto depth = window_part(window, 0, 1);
  for (auto* list : {&depth.kernel_shape, &depth.strides, &depth.dilations}) list->push_back(1);
  depth.pads = {depth.pads[0], 0, depth.pads[1], 0};
  const auto y = n.apply(make_op(with_window(op, depth)),
                         {n.reshape(planes, {s[0], s[1], s[2], p[2] * p[3]})});
  return n.reshape(y, {s[0], s[1], n.graph.spec(y).shape[2], p[2], p[3]});
}

template <class Op>
ValueId pool(const NodeImport& n, const Op& op, ValueId x) {
  const auto rank = n.graph.spec(x).shape.rank();
  n.refuse_unless(rank >= 3 && rank <= kVolume,
                  fmt::format("input 0 has {} dimensions; 3, 4 and 5 are supported", rank));
  if (static_cast<std::int64_t>(op.kernel_shape.size()) != rank - 2) {
    n.broken("kernel_shape does not fit its dimensions");
  }
  if (n.graph.spec(x).shape.elements() == 0) n.broken("the input is empty");
  require_meeting(n, op, n.graph.spec(x).shape);
  return rank == kVolume ? pool_volume(n, op, x) : n.apply(make_op(op), {x});
}

std::vector<ValueId> max_pool(NodeImport& n) {
  MaxPool op;
  static_cast<WindowAttributes&>(op) = window_attributes(n);
  op.ceil_mode = n.flag("ceil_mode");
  const bool column_major = n.flag("storage_order");
  std::vector<ValueId> outputs = {pool(n, op, n.in(0))};
  if (n.wants(1)) outputs.push_back(pool_indices(n, op, n.in(0), column_major));
  return outputs;
}

std::vector<ValueId> average_pool(NodeImport& n) {
  AveragePool op;
  static_cast<WindowAttributes&>(op) = window_attributes(n);
  op.ceil_mode = n.flag("ceil_mode");
  op.count_include_pad = n.flag("count_include_pad");
  return {n.like(0, pool(n, op, n.f32(0)))};
}

/// Each value goes to its place in the output, which is 0 elsewhere.
std::vector<ValueId> max_unpool(NodeImport& n) {
  const auto window = filled_window(n, window_attributes(n), n.rank(0) - 2);
  const auto axes = window.kernel_shape.size();
  if (axes == 0 || n.shape(0) != n.shape(1)) n.broken("its operands do not fit");
  Dims dims = n.shape(0).dims();
  for (std::size_t a = 0; a < axes; ++a) {
    dims[2 + a] = (dims[2 + a] - 1) * window.strides[a] + window.kernel_shape[a] - window.pads[a] -
                  window.pads[axes + a];
  }
  // The places count in the shape without pads. Another shape holds it at its begin.
  const Shape counted(dims);
  const auto wanted = n.has(2) ? Shape(n.known_integers(2)) : counted;
  if (wanted.rank() != counted.rank()) n.broken("output_shape does not fit its dimensions");
  GatherGradient op;
  op.input_shape = {counted.elements()};
  const auto elements = n.shape(0).elements();
  const auto flat =
      n.apply(make_op(op), {n.reshape(n.f32(0), {elements}), n.reshape(n.in(1), {elements})});
  const auto y = n.like(0, n.f.reshape(flat, counted));
  if (wanted == counted) return {y};
  Pad pad;
  pad.pads.assign(dims.size(), 0);
  for (std::size_t a = 0; a < dims.size(); ++a) {
    pad.pads.push_back(wanted.dims().at(a) - dims[a]);
    if (pad.pads.back() < 0) n.broken("output_shape is smaller than what its window makes");
  }
  return {n.apply(make_op(pad), {y})};
}

template <ReduceKind kind>
std::vector<ValueId> global_pool(NodeImport& n) {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 2; axis < n.rank(0); ++axis) axes.push_back(axis);
  if (axes.empty()) n.broken("its input has no spatial dimensions");
  return {n.like(0, n.apply(make_op(Reduce(kind, axes)), {n.f32(0)}))};
}

}  // namespace

void add_pool_translations(TranslationList& list) {
  list.insert(list.end(), {{"MaxPool", max_pool},
                           {"MaxUnpool", max_unpool},
                           {"AveragePool", average_pool},
                           {"GlobalAveragePool", global_pool<ReduceKind::Mean>},
                           {"GlobalMaxPool", global_pool<ReduceKind::Max>}});
}

}  // namespace triptych::onnx
