// SPDX-License-Identifier: Apache-2.0
#include "core/ops/assign.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {

void add_assign_cases(std::vector<OpCase>& cases) {
  InputRule state = f32({3, 5});
  state.state = true;
  cases.push_back({"f32", make_op(Assign{}), {state, f32({3, 5})}, false});
  state = exactly(DType::I64, {}, {3});
  state.state = true;
  cases.push_back({"i64", make_op(Assign{}), {state, exactly(DType::I64, {}, {7})}, false});
}

}  // namespace triptych::conformance
