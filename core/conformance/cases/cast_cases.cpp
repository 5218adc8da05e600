// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cast.h"

#include <fmt/core.h>

#include <limits>

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

OpPtr cast_to(DType dtype) {
  Cast op;
  op.to = to_string(dtype);
  return make_op(op);
}

}  // namespace

void add_cast_cases(std::vector<OpCase>& cases) {
  for (const auto from : kAllDTypes) {
    for (const auto onto : kAllDTypes) {
      const double low = from == DType::Bool || from == DType::U8 ? 0 : -100;
      const double high = from == DType::Bool ? 1 : 100;
      cases.push_back({fmt::format("{}_to_{}", to_string(from), to_string(onto)),
                       cast_to(onto),
                       {of(from, {3, 37}, low, high)},
                       from == onto && from == DType::F32});
    }
  }
  const auto edges = exactly(
      DType::F32, {12}, {-1e30, -1e10, -300, -128.9, -3.7, -0.5, 0, 0.5, 3.7, 300, 1e10, 1e30});
  for (const auto onto : {DType::I8, DType::U8, DType::I32, DType::I64, DType::Bool}) {
    cases.push_back({fmt::format("saturates_{}", to_string(onto)), cast_to(onto), {edges}, false});
    cases.push_back({fmt::format("nan_to_{}", to_string(onto)),
                     cast_to(onto),
                     {exactly(DType::F32, {2}, {std::numeric_limits<double>::quiet_NaN(), 1})},
                     false});
  }
  const auto wide =
      exactly(DType::I64, {6}, {-4294967297, -2147483649, -129, 128, 511, 4294967298});
  for (const auto onto : {DType::I8, DType::U8, DType::I32}) {
    cases.push_back({fmt::format("wraps_{}", to_string(onto)), cast_to(onto), {wide}, false});
  }
  cases.push_back({"ties_to_even",
                   cast_to(DType::BF16),
                   {exactly(DType::F32, {4}, {1 + 0x1p-8, 1 + 3 * 0x1p-8, -1 - 0x1p-8, 0x1p-130})},
                   false});
}

}  // namespace triptych::conformance
