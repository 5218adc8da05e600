// SPDX-License-Identifier: Apache-2.0
#include "core/ops/expand.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

OpPtr expand(Dims shape) {
  Expand op;
  op.shape = std::move(shape);
  return make_op(op);
}

}  // namespace

void add_expand_cases(std::vector<OpCase>& cases) {
  cases.push_back({"scalar", expand({2, 3}), {f32({})}});
  cases.push_back({"rows", expand({4, 3}), {f32({3})}});
  cases.push_back({"columns", expand({2, 5}), {f32({2, 1})}});
  cases.push_back({"channels", expand({2, 3, 4, 4}), {f32({3, 1, 1})}});
  cases.push_back({"both_ways", expand({3, 1}), {f32({1, 4})}});
  cases.push_back({"narrower_shape", expand({1}), {f32({2, 3})}});
  cases.push_back({"alternating", expand({2, 3, 2, 3, 2}), {f32({2, 1, 2, 1, 2})}});
  cases.push_back({"to_empty", expand({0, 3}), {f32({1, 3})}});
  add_dtypes(cases, "columns", expand({3, 4}), {3, 1});
}

}  // namespace triptych::conformance
