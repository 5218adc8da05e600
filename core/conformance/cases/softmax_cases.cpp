// SPDX-License-Identifier: Apache-2.0
#include "core/ops/softmax.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

template <class SoftmaxOp>
void add(std::vector<OpCase>& cases) {
  const auto along = [](std::int64_t axis) {
    SoftmaxOp op;
    op.axis = axis;
    return make_op(op);
  };
  cases.push_back({"row", along(-1), {f32({7})}});
  cases.push_back({"rows", along(-1), {f32({5, 13}, -3, 3)}});
  cases.push_back({"short_rows", along(-1), {f32({33, 24}, -3, 3)}});
  cases.push_back({"short_rows_and_one", along(-1), {f32({129, 9}, -3, 3)}});
  cases.push_back({"longest_short_rows", along(2), {f32({5, 8, 128}, -3, 3)}});
  cases.push_back({"beyond_short_rows", along(1), {f32({40, 129}, -3, 3)}});
  cases.push_back({"short_large_logits", along(-1), {f32({40, 5}, -80, 80)}, false});
  cases.push_back({"columns", along(0), {f32({13, 5}, -3, 3)}});
  cases.push_back({"channels", along(1), {f32({2, 4, 3, 5}, -3, 3)}});
  cases.push_back({"negative_axis", along(-2), {f32({2, 3, 4})}});
  cases.push_back({"one_element", along(1), {f32({6, 1})}});
  cases.push_back({"beyond_one_block", along(1), {f32({3, 2500}, -4, 4)}});
  cases.push_back({"long_columns", along(0), {f32({1100, 3}, -4, 4)}});
  cases.push_back({"large_logits", along(-1), {f32({8, 33}, -80, 80)}, false});
  cases.push_back({"equal_logits", along(-1), {exactly(DType::F32, {1, 4}, {80, 80, 80, 80})}});
  cases.push_back(
      {"one_wins", along(-1), {exactly(DType::F32, {1, 4}, {-80, 80, 0, -1e4})}, false});
}

}  // namespace

void add_softmax_cases(std::vector<OpCase>& cases) {
  add<Softmax>(cases);
  add<LogSoftmax>(cases);
}

}  // namespace triptych::conformance
