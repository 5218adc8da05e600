// Pooling. In three dimensions the depth is pooled after height and width: a maximum of maxima, a
// mean of means.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pool.h"

#include <fmt/core.h>

#include "core/onnx/node_import.h"
#include "core/onnx/translations/window.h"
#include "core/ops/reduce.h"

namespace triptych::onnx {
namespace {

constexpr std::int64_t kVolume = 5;

template <class Op>
Op with_window(Op op, const WindowAttributes& window) {
  static_cast<WindowAttributes&>(op) = window;
  return op;
}

/// Pads are less than the kernel, so that every window meets the input.
void require_meeting(const NodeImport& n, const WindowAttributes& window) {
  const auto axes = window.kernel_shape.size();
  if (axes == 0) n.broken("attribute kernel_shape is missing");
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
  require_meeting(n, op);
  return rank == kVolume ? pool_volume(n, op, x) : n.apply(make_op(op), {x});
}

std::vector<ValueId> max_pool(NodeImport& n) {
  MaxPool op;
  static_cast<WindowAttributes&>(op) = window_attributes(n);
  op.ceil_mode = n.flag("ceil_mode");
  n.refuse_unless(!n.wants(1), "output 1 (Indices) is not supported");
  n.ignore("storage_order");  // of the indices
  return {pool(n, op, n.in(0))};
}

std::vector<ValueId> average_pool(NodeImport& n) {
  AveragePool op;
  static_cast<WindowAttributes&>(op) = window_attributes(n);
  op.ceil_mode = n.flag("ceil_mode");
  op.count_include_pad = n.flag("count_include_pad");
  return {n.like(0, pool(n, op, n.f32(0)))};
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
                           {"AveragePool", average_pool},
                           {"GlobalAveragePool", global_pool<ReduceKind::Mean>},
                           {"GlobalMaxPool", global_pool<ReduceKind::Max>}});
}

}  // namespace triptych::onnx
