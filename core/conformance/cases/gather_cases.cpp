// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gather.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

OpPtr gather(std::int64_t axis) {
  Gather op;
  op.axis = axis;
  return make_op(op);
}

OpPtr gather_gradient(std::int64_t axis, Dims shape) {
  GatherGradient op;
  op.axis = axis;
  op.input_shape = std::move(shape);
  return make_op(op);
}

InputRule indices(DType dtype, Shape shape, std::vector<double> values) {
  auto rule = exactly(dtype, std::move(shape), std::move(values));
  rule.constant = true;
  return rule;
}

}  // namespace

void add_gather_cases(std::vector<OpCase>& cases) {
  const auto some = [](DType dtype) { return indices(dtype, {4}, {2, 0, -1, 2}); };
  const auto grid = indices(DType::I64, {2, 3}, {0, -2, 1, 1, -1, 0});
  cases.push_back({"vector", gather(0), {f32({5}), some(DType::I64)}});
  cases.push_back({"one", gather(0), {f32({5, 2}), indices(DType::I64, {}, {-2})}});
  cases.push_back({"axis0", gather(0), {f32({3, 4, 5}), some(DType::I32)}});
  cases.push_back({"axis1", gather(1), {f32({3, 4, 5}), some(DType::I64)}});
  cases.push_back({"axis2", gather(-1), {f32({3, 4, 5}), some(DType::I32)}});
  cases.push_back({"grid_axis0", gather(0), {f32({2, 3, 2}), grid}});
  cases.push_back({"grid_axis1", gather(1), {f32({2, 3, 2}), grid}});
  cases.push_back({"grid_axis2", gather(2), {f32({2, 3, 2}), grid}});
  cases.push_back({"none", gather(0), {f32({3, 2}), of(DType::I64, {0})}});
  cases.push_back({"rank5", gather(2), {f32({2, 1, 4, 2, 3}), some(DType::I64)}});
  cases.push_back({"computed_indices", gather(0), {f32({6, 3}), of(DType::I64, {2, 2}, -6, 5)}});
  cases.push_back(
      {"computed_ends", gather(0), {f32({3, 2}), exactly(DType::I32, {4}, {2, -3, 0, -1})}});
  for (const auto dtype : kAllDTypes) {
    cases.push_back({"rows_" + std::string(to_string(dtype)),
                     gather(0),
                     {of(dtype, {4, 3}, 0, 1), some(DType::I64)},
                     dtype == DType::F32});
  }
  cases.push_back({"axis0", gather_gradient(0, {3, 5}), {f32({4, 5}), some(DType::I64)}, false});
  cases.push_back(
      {"axis1", gather_gradient(1, {2, 3, 70}), {f32({2, 4, 70}), some(DType::I32)}, false});
  cases.push_back({"last_axis", gather_gradient(-1, {4, 3}), {f32({4, 2, 3}), grid}, false});
  cases.push_back({"many_on_one",
                   gather_gradient(0, {1, 2}),
                   {f32({40, 2}), indices(DType::I64, {40}, std::vector<double>(40, 0.0))},
                   false});
  cases.push_back({"none", gather_gradient(0, {3, 2}), {f32({0, 2}), of(DType::I64, {0})}, false});
}

}  // namespace triptych::conformance
