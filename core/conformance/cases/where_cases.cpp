// SPDX-License-Identifier: Apache-2.0
#include "core/ops/where.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {

void add_where_cases(std::vector<OpCase>& cases) {
  const auto op = make_op(Where{});
  const auto mask = [](Shape shape) { return of(DType::Bool, std::move(shape), 0, 1); };
  cases.push_back({"same_shape", op, {mask({3, 41}), f32({3, 41}), f32({3, 41})}});
  cases.push_back({"rank0", op, {mask({}), f32({}), f32({})}});
  cases.push_back({"scalar_branches", op, {mask({4, 9}), f32({}), f32({})}});
  cases.push_back({"scalar_else", op, {mask({4, 9}), f32({4, 9}), f32({})}});
  cases.push_back({"mask_row", op, {mask({9}), f32({4, 9}), f32({4, 1})}});
  cases.push_back({"three_ways", op, {mask({2, 1, 1}), f32({3, 1}), f32({1, 1, 4})}});
  for (const auto dtype :
       {DType::BF16, DType::F16, DType::I8, DType::U8, DType::I32, DType::I64, DType::Bool}) {
    const double high = dtype == DType::Bool ? 1 : 50;
    cases.push_back({std::string(to_string(dtype)),
                     op,
                     {mask({5, 13}), of(dtype, {5, 13}, 0, high), of(dtype, {13}, 0, high)},
                     false});
  }
}

}  // namespace triptych::conformance
