// Collectives as the only rank of their axis. tests/unit/parallel covers collectives of several
// ranks.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/collectives.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {

static const std::vector<double> kBits = {1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1};

void add_collectives_cases(std::vector<OpCase>& cases) {
  cases.push_back({"one", make_op(AllReduce{}), {f32({2, 3, 5})}});
  AllReduce average;
  average.scale = 0.25F;
  average.order = ReductionOrder::ShardTree;
  cases.push_back({"several_and_scaled", make_op(average), {f32({7}), f32({2, 3}), f32({})}});
  average.order = ReductionOrder::Ring;
  cases.push_back({"ring", make_op(average), {f32({9})}});
  ReduceScatter halves;
  halves.scale = 0.5F;
  cases.push_back({"whole", make_op(halves), {f32({2, 3}), f32({5})}});
  halves.split = 1;
  cases.push_back({"of_axis", make_op(halves), {f32({2, 3, 2})}});
  AllGather gather;
  gather.add_shape(Shape{2, 3});
  gather.add_shape(Shape{});
  cases.push_back({"shapes", make_op(gather), {f32({6}), f32({1})}});
  gather = {};
  gather.split = 1;
  gather.add_shape(Shape{2, 3, 2});
  cases.push_back({"of_axis", make_op(gather), {f32({2, 3, 2})}});
  cases.push_back({"bools", make_op(gather), {exactly(DType::Bool, {2, 3, 2}, kBits)}});
  cases.push_back({"two", make_op(Send{}), {f32({2, 3}), f32({5})}});
  cases.push_back(
      {"of_any_dtype", make_op(Send{}), {f32({3}), exactly(DType::Bool, {2, 3, 2}, kBits)}});
  Receive receive;
  receive.add({DType::F32, Shape{2, 3}});
  cases.push_back({"nobody", make_op(receive), {}});
}

}  // namespace triptych::conformance
