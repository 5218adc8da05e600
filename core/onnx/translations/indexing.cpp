// Elements picked by indices that are values, and tensors made of indices.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <set>

#include "core/onnx/element_type.h"
#include "core/onnx/node_import.h"
#include "core/onnx/translations/arithmetic.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/pad.h"
#include "core/ops/reduce.h"

namespace triptych::onnx {
namespace {

/// 0, 1, 2, ... along `axis` of a tensor that has the size `shape[axis]` there and 1 elsewhere.
ValueId counted(const NodeImport& n, const Shape& shape, std::int64_t axis,
                std::int64_t factor = 1) {
  Dims dims(static_cast<std::size_t>(shape.rank()), 1);
  dims[static_cast<std::size_t>(axis)] = shape[axis];
  n.graph.require_room({DType::I64, Shape(dims)});
  Tensor tensor(TensorSpec{DType::I64, Shape(dims)});
  const auto values = tensor.as<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i) * factor;
  return n.graph.constant(std::move(tensor));
}

/// Indices as int64, those below 0 counted from the end. Known ones are compared with the size
/// here, others by a Gather from 0, 1, 2, ... when the graph runs.
ValueId from_the_front(const NodeImport& n, ValueId indices, std::int64_t size) {
  const auto known = n.graph.known(indices);
  if (!known) return n.apply(make_op(Gather{}), {counted(n, Shape{size}, 0), indices});
  check_indices("indices", *known, size);
  const auto wide = n.cast(indices, DType::I64);
  const auto below = n.f.apply(BinaryKind::Less, wide, 0.0);
  return n.f.select(below, n.f.add(wide, static_cast<double>(size)), wide);
}

/// Elements of x at flat places.
ValueId taken(const NodeImport& n, ValueId x, ValueId places) {
  return n.apply(make_op(Gather{}), {n.reshape(x, {n.graph.spec(x).shape.elements()}), places});
}

/// The flat place in x of each element of the indices (input 1), which count along `axis`.
ValueId element_places(NodeImport& n) {
  const Shape x = n.shape(0), shape = n.shape(1);
  const auto axis = normalize_axis(n.integer("axis", 0), x.rank());
  if (shape.rank() != x.rank()) n.broken("its operands have different numbers of dimensions");
  const Dims strides = x.strides();
  const auto stride = [&](std::int64_t a) { return strides[static_cast<std::size_t>(a)]; };
  const auto indices = from_the_front(n, n.in(1), x[axis]);
  auto places = n.f.mul(indices, static_cast<double>(stride(axis)));
  for (std::int64_t a = 0; a < x.rank(); ++a) {
    if (a == axis) continue;
    if (shape[a] > x[a]) n.broken("its indices are larger than the input");
    places = n.f.add(places, counted(n, shape, a, stride(a)));
  }
  return places;
}

std::vector<ValueId> gather_elements(NodeImport& n) {
  return {taken(n, n.in(0), element_places(n))};
}

/// The last axis of the indices (input 1) is a position in the first axes of x. The other axes of x
/// form a row.
struct RowPlaces {
  ValueId places;
  Dims index_shape;  ///< of the indices without their last axis
  Dims rows;         ///< x's shape with the first axes as one

  explicit RowPlaces(const NodeImport& n) {
    const Shape x = n.shape(0), shape = n.shape(1);
    const auto depth = shape.rank() == 0 ? 0 : shape.dim(-1);
    if (depth < 1 || depth > x.rank()) n.broken("its indices do not fit the input");
    for (std::int64_t a = 0; a < depth; ++a) {
      const auto column = from_the_front(n, n.slice(n.in(1), -1, a, a + 1), x[a]);
      const auto stride = static_cast<double>(x.elements_between(a + 1, depth));
      const auto part = n.f.mul(column, stride);
      places = a == 0 ? part : n.f.add(places, part);
    }
    index_shape.assign(shape.dims().begin(), shape.dims().end() - 1);
    places = n.reshape(places, index_shape);
    rows = {x.elements_between(0, depth)};
    rows.insert(rows.end(), x.dims().begin() + depth, x.dims().end());
  }
};

std::vector<ValueId> gather_nd(NodeImport& n) {
  n.refuse_unless(n.integer("batch_dims", 0) == 0, "attribute batch_dims");
  const RowPlaces at(n);
  return {n.apply(make_op(Gather{}), {n.reshape(n.in(0), at.rows), at.places})};
}

void require_distinct(const NodeImport& n, ValueId places) {
  const auto known = n.graph.known(places);
  n.refuse_unless(known != nullptr, "indices that are not known, or more than 1024");
  const auto values = known->as<std::int64_t>();
  const std::set<std::int64_t> distinct(values.begin(), values.end());
  n.refuse_unless(distinct.size() == values.size(), "indices that stand twice");
}

/// x with the rows at `places` replaced by the updates (input 2), or with these added to them.
std::vector<ValueId> scattered(NodeImport& n, ValueId places, const Dims& rows) {
  const auto reduction = n.text("reduction", "none");
  n.refuse_unless(reduction == "none" || reduction == "add",
                  fmt::format("attribute reduction: {}", reduction));
  const auto count = n.graph.spec(places).shape.elements();
  Dims updated = rows;
  updated.front() = count;
  if (n.shape(2).elements() != Shape(updated).elements()) n.broken("its updates do not fit");
  GatherGradient op;
  op.input_shape = rows;
  const auto flat = n.reshape(places, {count});
  const auto added = [&](ValueId values) { return n.apply(make_op(op), {values, flat}); };
  const auto x = n.reshape(n.f32(0), rows), sums = added(n.reshape(n.f32(2), updated));
  ValueId y;
  if (reduction == "add") {
    y = n.f.add(x, sums);
  } else {
    require_distinct(n, places);
    const auto hits = added(n.filled({DType::F32, Shape(updated)}, 1));
    y = n.f.select(n.f.apply(BinaryKind::Greater, hits, 0.0), sums, x);
  }
  return {n.like(0, n.f.reshape(y, n.shape(0)))};
}

std::vector<ValueId> scatter_elements(NodeImport& n) {
  if (n.shape(2) != n.shape(1)) n.broken("its updates do not fit its indices");
  return scattered(n, element_places(n), {n.shape(0).elements()});
}

std::vector<ValueId> scatter_nd(NodeImport& n) {
  const RowPlaces at(n);
  return scattered(n, at.places, at.rows);
}

/// `on` where the index along a new axis is the given one, else `off`.
std::vector<ValueId> one_hot(NodeImport& n) {
  const auto depth = n.known_integer(1);
  if (depth < 1 || n.shape(2) != Shape{2}) n.broken("its operands do not fit");
  Dims dims = n.shape(0).dims();
  const auto axis = normalize_axis(n.integer("axis", -1), std::ssize(dims) + 1);
  dims.insert(dims.begin() + axis, 1);
  auto indices = n.cast(n.in(0), DType::I64);
  const auto below = n.f.apply(BinaryKind::Less, indices, 0.0);
  indices = n.f.select(below, n.f.add(indices, static_cast<double>(depth)), indices);
  auto whole = dims;
  whole[static_cast<std::size_t>(axis)] = depth;
  const auto is_on =
      n.f.apply(BinaryKind::Equal, n.reshape(indices, dims), counted(n, Shape(whole), axis));
  const auto value = [&](std::int64_t i) { return n.reshape(n.slice(n.in(2), 0, i, i + 1), {}); };
  return {n.f.select(is_on, value(1), value(0))};
}

/// 1 at the first largest element along an axis, else 0. Before operator set 13 the elements from
/// the axis on are one row.
std::vector<ValueId> hardmax(NodeImport& n) {
  const Shape shape = n.shape(0);
  auto axis = n.integer("axis", n.opset < 13 ? 1 : -1);
  axis = axis == shape.rank() ? axis : normalize_axis(axis, shape.rank());
  const Shape rows = n.opset >= 13 ? shape
                                   : Shape{shape.elements_between(0, axis),
                                           shape.elements_between(axis, shape.rank())};
  ArgMax op;
  op.axis = n.opset >= 13 ? axis : 1;
  const auto most = n.apply(make_op(op), {n.f.reshape(n.in(0), rows)});
  const auto is_most = n.f.apply(BinaryKind::Equal, most, counted(n, rows, op.axis));
  return {n.f.reshape(n.cast(is_most, n.dtype(0)), shape)};
}

std::vector<ValueId> eye_like(NodeImport& n) {
  const auto k = n.integer("k", 0);
  const Shape shape = n.shape(0);
  auto dtype = n.dtype(0);
  if (n.integer("dtype", 0) != 0) {
    dtype = require_element_type(n.integer("dtype", 0), "attribute dtype").dtype;
  }
  if (shape.rank() != 2) n.broken("its input is no matrix");
  const auto diagonal = n.f.sub(counted(n, shape, 1), counted(n, shape, 0));
  const auto is_on = n.f.apply(BinaryKind::Equal, diagonal, n.graph.constant(scalar_tensor(k)));
  return {n.cast(is_on, dtype)};
}

/// Each step adds the elements 1, 2, 4, ... positions before.
std::vector<ValueId> cumulative_sum(NodeImport& n) {
  const Shape shape = n.shape(0);
  const auto axis = normalize_axis(n.known_integer(1), shape.rank());
  const bool exclusive = n.flag("exclusive"), reverse = n.flag("reverse");
  const auto size = shape[axis];
  const auto moved = [&](ValueId x, std::int64_t by) {
    Pad pad;
    pad.pads.assign(static_cast<std::size_t>(2 * shape.rank()), 0);
    const auto begin = static_cast<std::size_t>(axis);
    const auto end = static_cast<std::size_t>(shape.rank() + axis);
    pad.pads[begin] = reverse ? -by : by;
    pad.pads[end] = reverse ? by : -by;
    return n.apply(make_op(std::move(pad)), {x});
  };
  auto sum = n.in(0);
  if (exclusive && size > 0) sum = moved(sum, 1);
  for (std::int64_t step = 1; step < size; step *= 2) {
    sum = arithmetic(n, BinaryKind::Add, sum, moved(sum, step));
  }
  return {sum};
}

}  // namespace

void add_indexing_translations(TranslationList& list) {
  list.insert(list.end(), {{"GatherElements", gather_elements},
                           {"GatherND", gather_nd},
                           {"Scatter", scatter_elements},
                           {"ScatterElements", scatter_elements},
                           {"ScatterND", scatter_nd},
                           {"OneHot", one_hot},
                           {"Hardmax", hardmax},
                           {"EyeLike", eye_like},
                           {"CumSum", cumulative_sum}});
}

}  // namespace triptych::onnx
