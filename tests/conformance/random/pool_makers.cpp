// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/pool.h"
#include "tests/conformance/random/makers.h"
#include "tests/conformance/random/windows.h"

namespace triptych::conformance {
namespace {

template <class Pool>
Pool some_pool(Grower& g, const Shape& x) {
  Pool op;
  const auto spatial = spatial_sizes(x);
  if (*std::ranges::min_element(spatial) >= 2 && g.chance(0.4)) {
    op.kernel_shape.assign(spatial.size(), 2);  // the pooling of a U-Net
    op.strides = op.kernel_shape;
    if (*std::ranges::min_element(spatial) >= 3 && g.chance(0.5)) {
      op.dilations.assign(spatial.size(), 1);
      op.pads.assign(2 * spatial.size(), 0);
      change_one_number(g, op.kernel_shape, op);
    }
  } else {
    some_window(g, spatial, true, op);
  }
  op.ceil_mode = op.auto_pad == "NOTSET" && g.chance(0.3);
  if constexpr (requires { op.count_include_pad; }) op.count_include_pad = g.chance(0.5);
  return op;
}

template <class Pool>
void add_pool(Grower& g) {
  const auto x = g.image();
  g.add(make_op(some_pool<Pool>(g, g.shape_of(x))), {x});
}

void add_integer_max_pool(Grower& g) {
  const auto x = g.operand(
      {.dtypes = {DType::I8, DType::I32, DType::I64, DType::BF16}, .min_rank = 3, .max_rank = 4});
  g.add(make_op(some_pool<MaxPool>(g, g.shape_of(x))), {x});
}

/// `Gradient` with the attributes of `pool`, and the shape of dy.
template <class Gradient, class Pool>
std::pair<Gradient, Shape> gradient_of(const Pool& pool, const Shape& x) {
  Gradient op;
  static_cast<PoolAttributes&>(op) = pool;
  return {op, pool.infer(std::vector<TensorSpec>{{DType::F32, x}}).front().shape};
}

void add_max_pool_gradient(Grower& g) {
  const auto x = g.image();
  const auto pool = some_pool<MaxPool>(g, g.shape_of(x));
  const auto [op, dy] = gradient_of<MaxPoolGradient>(pool, g.shape_of(x));
  g.add(make_op(op), {x, g.operand_of(dy, 1)});
}

void add_indexed_max_pool(Grower& g) {
  const auto x = g.image();
  const auto pool = some_pool<MaxPoolWithIndex>(g, g.shape_of(x));
  if (Shape(pool.kernel_shape).elements() > MaxPoolWithIndex::kMostTaps) return;
  const auto outputs = g.add(make_op(pool), {x});
  MaxPoolIndexGradient gradient;
  static_cast<PoolAttributes&>(gradient) = pool;
  gradient.input_shape = g.shape_of(x).dims();
  g.add(make_op(gradient), {outputs[1], g.operand_of(g.shape_of(outputs[0]))});
}

void add_average_pool_gradient(Grower& g) {
  const Shape x = g.shape(3, 4);
  const auto pool = some_pool<AveragePool>(g, x);
  auto [op, dy] = gradient_of<AveragePoolGradient>(pool, x);
  op.count_include_pad = pool.count_include_pad;
  op.input_shape = x.dims();
  g.add(make_op(op), {g.operand_of(dy)});
}

void add_global_average_pool(Grower& g) { g.add(make_op(GlobalAveragePool{}), {g.image()}); }

}  // namespace

void add_pool_makers(std::vector<Maker>& makers) {
  makers.insert(makers.end(), {{add_pool<MaxPool>, 2},
                               {add_pool<AveragePool>},
                               {add_integer_max_pool, 1, false},
                               {add_max_pool_gradient, 1, false},
                               {add_indexed_max_pool, 1, false},
                               {add_average_pool_gradient, 1, false},
                               {add_global_average_pool}});
}

}  // namespace triptych::conformance
