// SPDX-License-Identifier: Apache-2.0
#include "core/conformance/op_case.h"

#include "core/conformance/case_list.h"

namespace triptych::conformance {

InputRule f32(Shape shape, double low, double high) {
  return of(DType::F32, std::move(shape), low, high);
}

InputRule of(DType dtype, Shape shape, double low, double high) {
  return {.spec = {dtype, std::move(shape)}, .low = low, .high = high};
}

InputRule exactly(DType dtype, Shape shape, std::vector<double> values) {
  return {.spec = {dtype, std::move(shape)}, .values = std::move(values)};
}

std::vector<InputRule> requantization(std::int64_t channels) {
  return {of(DType::I32, {channels}, -20000, 20000),
          of(DType::I32, {channels}, 0x40000000, 0x7FFFFFFF), of(DType::I32, {channels}, 37, 42)};
}

void add_dtypes(std::vector<OpCase>& cases, const std::string& name, const OpPtr& op,
                const Shape& x) {
  for (const auto dtype : kAllDTypes) {
    const double high = dtype == DType::Bool ? 1 : 100;
    cases.push_back({name + "_" + std::string(to_string(dtype)),
                     op,
                     {of(dtype, x, 0, high)},
                     dtype == DType::F32});
  }
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  add_all_cases(cases);
  return cases;
}

}  // namespace triptych::conformance
