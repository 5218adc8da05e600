// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/concat.h"
#include "core/ops/expand.h"
#include "core/ops/gather.h"
#include "core/ops/reshape.h"
#include "core/ops/slice.h"
#include "core/ops/transpose.h"
#include "core/ops/unary.h"
#include "tests/conformance/random/makers.h"

namespace triptych::conformance {
namespace {

/// Mostly float32, sometimes of any dtype.
Want anything(Grower& g, std::int64_t min_rank = 0) {
  Want want{.min_rank = min_rank};
  if (!g.smooth() && g.chance(0.3))
    want.dtypes.assign(std::begin(kAllDTypes), std::end(kAllDTypes));
  return want;
}

/// The shape of x in other factors, with -1 and 0 where they mean the same.
void add_reshape(Grower& g) {
  const auto x = g.operand(anything(g));
  const Shape& shape = g.shape_of(x);
  Reshape op;
  auto left = shape.elements();
  while (left > 1 && op.shape.size() < 3) {
    const auto divisor = g.between(1, std::min<std::int64_t>(left, 9));
    if (left % divisor != 0) continue;
    op.shape.push_back(divisor);
    left /= divisor;
  }
  if (left > 1 || g.chance(0.3)) op.shape.push_back(left);
  if (!op.shape.empty() && g.chance(0.3)) g.chance(0.5) ? op.shape[0] = -1 : op.shape.back() = -1;
  const bool keeps_first = !op.shape.empty() && shape.rank() > 0 && op.shape[0] == shape[0];
  if (keeps_first) op.shape[0] = 0;
  g.add(make_op(op), {x});
}

void add_view(Grower& g) {
  const auto x = g.operand(anything(g));
  const Shape& shape = g.shape_of(x);
  if (g.chance(0.3)) {
    Flatten op;
    op.axis = g.between(-shape.rank(), shape.rank());
    g.add(make_op(op), {x});
  } else if (g.chance(0.4) && shape.rank() < 4) {
    Unsqueeze op;
    op.axes = {some_axis(g, shape.rank() + 1)};
    const auto y = g.add_one(make_op(op), {x});
    if (is_floating(g.spec(x).dtype)) g.add(make_op(Unary(UnaryKind::Neg)), {y});
  } else if (g.chance(0.6)) {
    Squeeze op;
    for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1 && g.chance(0.5)) op.axes.push_back(axis);
    }
    g.add(make_op(op), {x});
  } else {
    g.add(make_op(Identity{}), {x});
  }
}

/// A view of a view, to other axes and back, with or without a kernel on the way.
void add_view_chain(Grower& g) {
  const auto x = g.operand();
  Reshape flat;
  flat.shape = {-1};
  Reshape back;
  back.shape = g.shape_of(x).dims();
  auto y = g.add_one(make_op(flat), {x});
  if (g.chance(0.5)) y = g.add_one(make_op(Unary(UnaryKind::Relu)), {y});
  g.add(make_op(back), {y});
}

void add_transpose(Grower& g) {
  const auto x = g.operand(anything(g));
  const auto rank = g.shape_of(x).rank();
  Transpose op;
  if (g.chance(0.8)) {
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      op.perm.insert(op.perm.begin() + g.between(0, axis), axis);
    }
  }
  g.add(make_op(op), {x});
}

void add_expand(Grower& g) {
  const auto x = g.operand(anything(g));
  Expand op;
  op.shape = g.shape_of(x).dims();
  for (auto& size : op.shape) {
    if (size == 1) {
      size = g.between(1, 4);
    } else if (g.chance(0.2)) {
      size = 1;
    }
  }
  if (op.shape.size() < 4 && g.chance(0.4)) op.shape.insert(op.shape.begin(), g.between(1, 3));
  g.add(make_op(op), {x});
}

void add_concat(Grower& g) {
  const auto x = g.operand(anything(g, 1));
  const auto spec = g.spec(x);
  const auto axis = g.between(0, spec.shape.rank() - 1);
  Concat op;
  op.axis = g.chance(0.3) ? axis - spec.shape.rank() : axis;
  std::vector<ValueId> inputs = {x};
  for (auto extra = g.between(0, 2); extra > 0; --extra) {
    Dims dims = spec.shape.dims();
    if (g.chance(0.5)) dims[static_cast<std::size_t>(axis)] = g.between(1, 4);
    inputs.insert(inputs.begin() + g.between(0, std::ssize(inputs)),
                  g.operand_of({spec.dtype, Shape(std::move(dims))}));
  }
  g.add(make_op(op), inputs);
}

/// A skip connection: pieces that kernels of their own write, as a concat in place needs them.
void add_skip(Grower& g) {
  const auto x = g.image();
  const auto left = g.add_one(make_op(Unary(UnaryKind::Tanh)), {x});
  const auto right = g.add_one(make_op(Unary(UnaryKind::Relu)), {g.chance(0.5) ? left : x});
  Concat op;
  op.axis = g.chance(0.8) ? 1 : 0;
  const auto y = g.add_one(make_op(op), {left, right});
  if (g.chance(0.5)) g.add(make_op(Unary(UnaryKind::Relu)), {y});
}

void add_split(Grower& g) {
  const auto x = g.operand(anything(g, 1));
  const auto rank = g.shape_of(x).rank();
  Split op;
  op.axis = some_axis(g, rank);
  const auto size = g.shape_of(x).dim(op.axis);
  if (size == 1 || g.chance(0.3)) {
    op.num_outputs = std::min<std::int64_t>(size, 2);
  } else {
    const auto first = g.between(1, size - 1);
    op.split = {first, size - first};
  }
  g.add(make_op(op), {x});
}

/// Sections with at least one element, forwards and backwards.
Slice some_slice(Grower& g, const Shape& shape) {
  Slice op;
  for (const auto axis : some_axes(g, shape.rank(), 0)) {
    const auto size = shape.dim(axis);
    const auto step = g.one_of<std::int64_t>({1, 1, 2, 3, -1, -2});
    const auto start = g.between(0, size - 1);
    auto end = step > 0 ? g.between(start + 1, size + 1) : g.between(-1, start - 1);
    if (end < 0) end = -size - 1;
    op.axes.push_back(axis);
    op.starts.push_back(g.chance(0.3) ? start - size : start);
    op.ends.push_back(end);
    op.steps.push_back(step);
  }
  return op;
}

void add_slice(Grower& g) {
  const auto x = g.operand(anything(g));
  g.add(make_op(some_slice(g, g.shape_of(x))), {x});
}

void add_slice_gradient(Grower& g) {
  const Shape x = g.shape(0, 4);
  const auto forward = some_slice(g, x);
  SliceGradient op;
  op.input_shape = x.dims();
  op.starts = forward.starts;
  op.ends = forward.ends;
  op.axes = forward.axes;
  op.steps = forward.steps;
  g.add(make_op(op), {g.operand_of(SliceGeometry::of(forward, x).output)});
}

ValueId some_indices(Grower& g, std::int64_t size) {
  const TensorSpec spec{g.chance(0.5) ? DType::I64 : DType::I32, g.shape(0, 2)};
  const auto low = static_cast<double>(-size), high = static_cast<double>(size - 1);
  return g.chance(0.5) ? g.constant(spec, low, high) : g.leaf(spec, low, high);
}

void add_gather(Grower& g) {
  const auto x = g.operand(anything(g, 1));
  const Shape shape = g.shape_of(x);
  Gather op;
  op.axis = some_axis(g, shape.rank());
  g.add(make_op(op), {x, some_indices(g, shape.dim(op.axis))});
}

void add_gather_gradient(Grower& g) {
  const Shape x = g.shape(1, 3);
  Gather forward;
  forward.axis = some_axis(g, x.rank());
  const auto indices = some_indices(g, x.dim(forward.axis));
  const auto y = forward.infer(std::vector<TensorSpec>{{DType::F32, x}, g.spec(indices)}).front();
  GatherGradient op;
  op.axis = forward.axis;
  op.input_shape = x.dims();
  g.add(make_op(op), {g.operand_of(y), indices});
}

}  // namespace

void add_movement_makers(std::vector<Maker>& makers) {
  makers.insert(makers.end(), {{add_reshape},
                               {add_view, 2},
                               {add_view_chain},
                               {add_transpose, 2},
                               {add_expand},
                               {add_concat, 2},
                               {add_skip, 2},
                               {add_split},
                               {add_slice, 2},
                               {add_slice_gradient, 1, false},
                               {add_gather},
                               {add_gather_gradient, 1, false}});
}

}  // namespace triptych::conformance
