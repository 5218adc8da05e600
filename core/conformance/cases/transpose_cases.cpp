// SPDX-License-Identifier: Apache-2.0
#include "core/ops/transpose.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

OpPtr transpose(Dims perm) {
  Transpose op;
  op.perm = std::move(perm);
  return make_op(op);
}

}  // namespace

void add_transpose_cases(std::vector<OpCase>& cases) {
  cases.push_back({"scalar", transpose({}), {f32({})}});
  cases.push_back({"vector", transpose({0}), {f32({5})}});
  cases.push_back({"matrix", transpose({}), {f32({5, 7})}});
  cases.push_back({"matrix_beyond_tiles", transpose({1, 0}), {f32({130, 67})}});
  cases.push_back({"nchw_to_nhwc", transpose({0, 2, 3, 1}), {f32({2, 5, 4, 3})}});
  cases.push_back({"nhwc_to_nchw", transpose({0, 3, 1, 2}), {f32({2, 4, 3, 5})}});
  cases.push_back({"swap_outer", transpose({1, 0, 2}), {f32({3, 4, 6})}});
  cases.push_back({"rank5_reversed", transpose({}), {f32({2, 3, 4, 2, 3})}});
  cases.push_back({"rank5_mixed", transpose({3, 0, 4, 2, 1}), {f32({2, 3, 4, 2, 3})}});
  cases.push_back({"identity", transpose({0, 1, 2}), {f32({2, 3, 4})}});
  cases.push_back({"negative_axes", transpose({-1, 0}), {f32({2, 3})}});
  cases.push_back({"ones", transpose({2, 0, 1}), {f32({1, 6, 1})}});
  cases.push_back({"empty", transpose({1, 0}), {f32({0, 3})}});
  add_dtypes(cases, "matrix", transpose({1, 0}), {9, 35});
}

}  // namespace triptych::conformance
