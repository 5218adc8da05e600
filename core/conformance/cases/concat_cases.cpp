// SPDX-License-Identifier: Apache-2.0
#include "core/ops/concat.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

OpPtr concat(std::int64_t axis) {
  Concat op;
  op.axis = axis;
  return make_op(op);
}

OpPtr split(std::int64_t axis, Dims sizes, std::int64_t outputs = 0) {
  Split op;
  op.axis = axis;
  op.split = std::move(sizes);
  op.num_outputs = outputs;
  return make_op(op);
}

}  // namespace

void add_concat_cases(std::vector<OpCase>& cases) {
  cases.push_back({"one", concat(0), {f32({2, 3})}});
  cases.push_back({"rows", concat(0), {f32({2, 3}), f32({1, 3})}});
  cases.push_back({"columns", concat(-1), {f32({2, 3}), f32({2, 1}), f32({2, 4})}});
  cases.push_back({"channels", concat(1), {f32({2, 3, 4, 4}), f32({2, 5, 4, 4})}});
  cases.push_back({"vectors", concat(0), {f32({3}), f32({1})}});
  cases.push_back({"rank5_middle", concat(2), {f32({2, 2, 1, 3, 2}), f32({2, 2, 3, 3, 2})}});
  cases.push_back({"with_empty", concat(1), {f32({2, 3}), f32({2, 0}), f32({2, 2})}});
  cases.push_back(
      {"i64", concat(0), {of(DType::I64, {2, 2}, -9, 9), of(DType::I64, {1, 2}, -9, 9)}, false});
  cases.push_back(
      {"u8", concat(1), {of(DType::U8, {2, 3}, 0, 255), of(DType::U8, {2, 2}, 0, 255)}, false});
  cases.push_back({"bf16", concat(1), {of(DType::BF16, {2, 3}), of(DType::BF16, {2, 2})}, false});
  cases.push_back({"sizes", split(1, {1, 3, 2}), {f32({2, 6})}});
  cases.push_back({"with_empty_part", split(0, {0, 3}), {f32({3, 2})}});
  cases.push_back({"equal", split(-1, {}, 3), {f32({2, 6})}});
  cases.push_back({"last_smaller", split(0, {}, 3), {f32({7, 2})}});
}

}  // namespace triptych::conformance
