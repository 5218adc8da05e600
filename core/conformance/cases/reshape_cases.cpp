// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reshape.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

OpPtr reshape(Dims shape, bool allowzero = false) {
  Reshape op;
  op.shape = std::move(shape);
  op.allowzero = allowzero;
  return make_op(op);
}

OpPtr flatten(std::int64_t axis) {
  Flatten op;
  op.axis = axis;
  return make_op(op);
}

template <class AxesOp>
OpPtr with_axes(const Dims& axes) {
  AxesOp op;
  op.axes = axes;
  return make_op(op);
}

}  // namespace

void add_reshape_cases(std::vector<OpCase>& cases) {
  cases.push_back({"same", reshape({2, 3}), {f32({2, 3})}});
  cases.push_back({"infer_last", reshape({2, -1}), {f32({2, 3, 4})}});
  cases.push_back({"copy_and_infer", reshape({0, -1, 2}), {f32({3, 4, 5})}});
  cases.push_back({"to_scalar", reshape({}), {f32({1, 1})}});
  cases.push_back({"from_scalar", reshape({1, 1, 1}), {f32({})}});
  cases.push_back({"to_rank5", reshape({2, 1, 3, 2, 5}), {f32({12, 5})}});
  cases.push_back({"empty_allowzero", reshape({3, 0}, true), {f32({0, 7})}});
  cases.push_back({"empty_copied_zero", reshape({0, 5}), {f32({0, 5})}});
  add_dtypes(cases, "flat", reshape({-1}), {3, 5});
  cases.push_back({"axis1", flatten(1), {f32({2, 3, 4})}});
  cases.push_back({"axis0", flatten(0), {f32({2, 3, 4})}});
  cases.push_back({"axis_behind_last", flatten(3), {f32({2, 3, 4})}});
  cases.push_back({"axis_negative", flatten(-1), {f32({2, 3, 4})}});
  cases.push_back({"scalar", flatten(0), {f32({})}});
  cases.push_back({"all", with_axes<Squeeze>({}), {f32({1, 3, 1, 2})}});
  cases.push_back({"some", with_axes<Squeeze>({0, -1}), {f32({1, 3, 1, 1})}});
  cases.push_back({"to_scalar", with_axes<Squeeze>({}), {f32({1, 1})}});
  cases.push_back({"front_and_back", with_axes<Unsqueeze>({0, -1}), {f32({2, 3})}});
  cases.push_back({"unsorted", with_axes<Unsqueeze>({3, 1}), {f32({2, 3})}});
  cases.push_back({"scalar", with_axes<Unsqueeze>({0}), {f32({})}});
  cases.push_back({"rank3", make_op(Identity{}), {f32({2, 3, 4})}});
  cases.push_back({"empty", make_op(Identity{}), {f32({0, 2})}});
}

}  // namespace triptych::conformance
