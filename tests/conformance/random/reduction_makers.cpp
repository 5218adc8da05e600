// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "tests/conformance/random/makers.h"

namespace triptych::conformance {
namespace {

void add_reduce(Grower& g) {
  using enum ReduceKind;
  Reduce op(g.one_of<ReduceKind>({Sum, Mean, Max, Min}));
  Want want;
  if (!g.smooth() && op.kind != Mean && g.chance(0.2)) want.dtypes = {DType::I32, DType::I64};
  const auto x = g.operand(want);
  op.axes = some_axes(g, g.shape_of(x).rank(), 0);
  op.keepdims = g.chance(0.5);
  g.add(make_op(op), {x});
}

void add_arg_max(Grower& g) {
  const auto x =
      g.operand({.dtypes = {DType::F32, DType::F32, DType::I64, DType::I8}, .min_rank = 1});
  ArgMax op;
  op.axis = some_axis(g, g.shape_of(x).rank());
  op.keepdims = g.chance(0.5);
  op.select_last_index = g.chance(0.5);
  g.add(make_op(op), {x});
}

template <class Op>
void add_softmax(Grower& g) {
  const auto x = g.operand({.min_rank = 1});
  Op op;
  op.axis = some_axis(g, g.shape_of(x).rank());
  g.add(make_op(op), {x});
}

}  // namespace

std::int64_t some_axis(Grower& g, std::int64_t rank) { return g.between(-rank, rank - 1); }

std::vector<std::int64_t> some_axes(Grower& g, std::int64_t rank, std::int64_t least) {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const bool needed = std::ssize(axes) + rank - axis <= least;
    if (needed || g.chance(0.45)) axes.push_back(g.chance(0.3) ? axis - rank : axis);
  }
  return axes;
}

void add_reduction_makers(std::vector<Maker>& makers) {
  makers.insert(makers.end(), {{add_reduce, 3},
                               {add_arg_max, 1, false},
                               {add_softmax<Softmax>},
                               {add_softmax<LogSoftmax>}});
}

}  // namespace triptych::conformance
