// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/pad.h"
#include "core/ops/resize.h"
#include "tests/conformance/random/makers.h"

namespace triptych::conformance {
namespace {

Pad some_pad(Grower& g, const Shape& shape) {
  Pad op;
  const bool has_single =
      std::ranges::any_of(shape.dims(), [](std::int64_t size) { return size < 2; });
  op.mode = has_single ? g.one_of<std::string>({"constant", "edge"})
                       : g.one_of<std::string>({"constant", "edge", "reflect"});
  op.value = g.one_of<float>({0, 0, 1.5F});
  op.pads.resize(static_cast<std::size_t>(2 * shape.rank()));
  for (std::size_t i = 0; i < op.pads.size(); ++i) {
    const auto size = shape.dims()[i % shape.dims().size()];
    op.pads[i] = g.between(size > 2 ? -1 : 0, 2);
  }
  return op;
}

void add_pad(Grower& g) {
  Want want;
  if (!g.smooth() && g.chance(0.2)) want.dtypes = {DType::I64, DType::U8, DType::Bool};
  const auto x = g.operand(want);
  g.add(make_op(some_pad(g, g.shape_of(x))), {x});
}

void add_pad_gradient(Grower& g) {
  const Shape x = g.shape(0, 4);
  const auto forward = some_pad(g, x);
  PadGradient op;
  op.input_shape = x.dims();
  op.pads = forward.pads;
  op.mode = forward.mode;
  const auto y = forward.infer(std::vector<TensorSpec>{{DType::F32, x}}).front();
  g.add(make_op(op), {g.operand_of(y)});
}

/// Resizes at most two axes, so that the result stays small.
Resize some_resize(Grower& g, const Shape& shape) {
  Resize op;
  const bool by_scales = g.chance(0.5);
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    const bool changes = axis >= shape.rank() - 2 && g.chance(0.8);
    if (by_scales) {
      op.scales.push_back(changes ? g.one_of<float>({1, 1.7F, 2, 3}) : 1);
      if (changes && shape[axis] > 1 && g.chance(0.3)) op.scales.back() = 0.5F;
    } else {
      op.sizes.push_back(changes ? g.between(1, 9) : shape[axis]);
    }
  }
  op.mode = g.one_of<std::string>({"nearest", "linear"});
  op.coordinate_transformation_mode =
      g.one_of<std::string>({"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"});
  op.nearest_mode =
      g.one_of<std::string>({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  return op;
}

void add_resize(Grower& g) {
  const auto x = g.operand({.min_rank = 1});
  g.add(make_op(some_resize(g, g.shape_of(x))), {x});
}

void add_resize_gradient(Grower& g) {
  const Shape x = g.shape(1, 4);
  const auto forward = some_resize(g, x);
  ResizeGradient op;
  op.input_shape = x.dims();
  op.scales = forward.scales;
  op.sizes = forward.sizes;
  op.mode = forward.mode;
  op.coordinate_transformation_mode = forward.coordinate_transformation_mode;
  op.nearest_mode = forward.nearest_mode;
  const auto y = forward.infer(std::vector<TensorSpec>{{DType::F32, x}}).front();
  g.add(make_op(op), {g.operand_of(y)});
}

}  // namespace

void add_resampling_makers(std::vector<Maker>& makers) {
  makers.insert(
      makers.end(),
      {{add_pad}, {add_pad_gradient, 1, false}, {add_resize, 2}, {add_resize_gradient, 1, false}});
}

}  // namespace triptych::conformance
