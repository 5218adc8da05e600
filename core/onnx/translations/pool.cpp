// Pooling. In three dimensions the depth is pooled after height and width: a maximum of maxima, a
// mean of means.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pool.h"

#include <fmt/core.h>

#include "core/onnx/node_import.h"
#include "core/onnx/translations/pool_indices.h"
#include "core/onnx/translations/window.h"
#include "core/ops/gather.h"
#include "core/ops/pad.h"
#include "core/ops/reduce.h"

namespace triptych::onnx {
namespace {

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
  // The places count in the shape without pads; another shape holds it at its begin.
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
