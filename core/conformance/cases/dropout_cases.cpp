// SPDX-License-Identifier: Apache-2.0
#include "core/ops/dropout.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {

void add_dropout_cases(std::vector<OpCase>& cases) {
  const auto step = [](double value) { return exactly(DType::I64, {}, {value}); };
  Dropout op;
  cases.push_back({"inference", make_op(op), {f32({3, 17})}});
  cases.push_back({"inference_with_step", make_op(op), {f32({3, 17}), step(4)}});
  op.training_mode = true;
  op.seed = 7;
  op.stream = 3;
  cases.push_back({"half", make_op(op), {f32({3, 17}), step(0)}});
  cases.push_back({"half_later", make_op(op), {f32({3, 17}), step(1000)}});
  cases.push_back({"half_many", make_op(op), {f32({2, 3, 1021}), step(5)}});
  for (const std::int64_t first : {1, 6, 511, 2044}) {  // within a four and between fours
    op.first_element = first;
    cases.push_back({"share_from_" + std::to_string(first), make_op(op), {f32({3, 173}), step(5)}});
  }
  op.first_element = 0;
  op.ratio = 0.1F;
  cases.push_back({"tenth", make_op(op), {f32({4, 4, 5}), step(12)}});
  op.ratio = 0;
  cases.push_back({"nothing", make_op(op), {f32({31}), step(1)}});
  op.ratio = 0.75F;
  op.seed = -1;
  op.stream = 4294967295;
  cases.push_back({"large_seed_and_stream", make_op(op), {f32({100}), step(2147483648)}});
}

}  // namespace triptych::conformance
