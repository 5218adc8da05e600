// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"

#include <fmt/core.h>

#include <limits>

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

using enum BinaryKind;

bool is_comparison(BinaryKind kind) { return kind >= Equal && kind <= GreaterOrEqual; }
bool is_logic(BinaryKind kind) { return kind == And || kind == Or; }
bool is_gradient(BinaryKind kind) { return kind >= ReluGradient; }

/// Operand 0 or 1 of this kind, filled where the operator is defined.
InputRule operand(BinaryKind kind, int index, DType dtype, Shape shape) {
  const bool positive = kind == Pow ? index == 0 : kind == Div && index == 1;
  if (is_logic(kind)) return of(DType::Bool, std::move(shape), 0, 1);
  if (!is_floating(dtype)) {
    const double low = kind == Pow && index == 1 ? 0 : -3;
    return of(dtype, std::move(shape), low, 3);
  }
  if (is_comparison(kind)) return of(dtype, std::move(shape), -1, 1);
  return of(dtype, std::move(shape), positive ? 0.5 : -2, 2);
}

OpCase pair(std::string name, BinaryKind kind, DType dtype, Shape a, Shape b) {
  const bool smooth = dtype == DType::F32 && Binary(kind).differentiable();
  return {std::move(name),
          make_op(Binary(kind)),
          {operand(kind, 0, dtype, std::move(a)), operand(kind, 1, dtype, std::move(b))},
          smooth};
}

void add_kind(std::vector<OpCase>& cases, BinaryKind kind) {
  cases.push_back(pair("same_shape", kind, DType::F32, {3, 4, 5}, {3, 4, 5}));
  cases.push_back(pair("rank0", kind, DType::F32, {}, {}));
  cases.push_back(pair("vector_tail", kind, DType::F32, {1037}, {1037}));
  if (is_gradient(kind)) return;
  cases.push_back(pair("scalar_right", kind, DType::F32, {3, 37}, {}));
  cases.push_back(pair("scalar_left", kind, DType::F32, {}, {3, 37}));
  cases.push_back(pair("one_element_right", kind, DType::F32, {3, 7}, {1, 1, 1}));
  cases.push_back(pair("row", kind, DType::F32, {5, 17}, {17}));
  cases.push_back(pair("column", kind, DType::F32, {5, 17}, {5, 1}));
  cases.push_back(pair("short_rows", kind, DType::F32, {97, 24}, {97, 1}));
  cases.push_back(pair("short_row_repeated", kind, DType::F32, {7}, {150, 7}));
  cases.push_back(pair("per_channel", kind, DType::F32, {2, 3, 4, 5}, {1, 3, 1, 1}));
  cases.push_back(pair("middle_axis", kind, DType::F32, {2, 3, 4, 5}, {3, 1, 5}));
  cases.push_back(pair("both_ways", kind, DType::F32, {2, 1, 3, 1}, {4, 1, 5}));
  if (is_logic(kind)) return;
  for (const auto dtype : {DType::BF16, DType::F16, DType::I32, DType::I64}) {
    const auto name = std::string(to_string(dtype));
    cases.push_back(pair(name, kind, dtype, {6, 35}, {6, 35}));
    cases.push_back(pair(name + "_row", kind, dtype, {6, 35}, {35}));
    cases.push_back(pair(name + "_short_rows", kind, dtype, {40, 5}, {40, 1}));
  }
}

void add_values(std::vector<OpCase>& cases, std::string name, BinaryKind kind, DType dtype,
                std::vector<double> a, std::vector<double> b) {
  const auto size = static_cast<std::int64_t>(a.size());
  cases.push_back({std::move(name),
                   make_op(Binary(kind)),
                   {exactly(dtype, {size}, std::move(a)), exactly(dtype, {size}, std::move(b))},
                   false});
}

void add_exact_values(std::vector<OpCase>& cases) {
  for (const auto kind : {Equal, Less, LessOrEqual, Greater, GreaterOrEqual, Min, Max}) {
    add_values(cases, "ties", kind, DType::F32, {1, 2, 3, 0, -4, 1e30}, {1, 3, 2, 0, -4, -1e30});
  }
  constexpr double largest = 2147483647, smallest = -2147483648.0;
  add_values(cases, "i32_wraps", Add, DType::I32, {largest, smallest, 5}, {1, -1, -7});
  add_values(cases, "i32_wraps", Sub, DType::I32, {smallest, largest, 5}, {1, -1, 7});
  add_values(cases, "i32_wraps", Mul, DType::I32, {65536, 46341, -5}, {65537, 46341, 7});
  add_values(cases, "i32_wraps", Pow, DType::I32, {2, 3, -3, 0}, {31, 21, 3, 0});
  for (const auto dtype : {DType::I32, DType::I64}) {
    const auto suffix = to_string(dtype);
    add_values(cases, fmt::format("{}_truncates", suffix), Div, dtype, {7, -7, 7, -7, 5, 0},
               {2, 2, -2, -2, 0, 3});
    add_values(cases, fmt::format("{}_negative_exponent", suffix), Pow, dtype, {2, -1, -1, 1, -7},
               {-1, -3, -2, -5, -1});
  }
  add_values(cases, "whole_exponents", Pow, DType::F32, {-2, -2, 3, 0, 0.5}, {3, 2, 0, 2, -2});
  add_values(cases, "at_zero", ReluGradient, DType::F32, {1, 2, 3}, {-1, 0, 1});
}

/// Results that IEEE 754 would give as subnormals (the last product rounds up to the smallest
/// normal number), and every way to a NaN.
void add_edges(std::vector<OpCase>& cases) {
  constexpr double kTiny = 0x1p-126, kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto add = [&](const char* name, BinaryKind kind, const std::vector<double>& a,
                       const std::vector<double>& b) {
    const Shape shape = {static_cast<std::int64_t>(a.size())};
    cases.push_back({name,
                     make_op(Binary(kind)),
                     {exactly(DType::F32, shape, a), exactly(DType::F32, shape, b)},
                     false});
  };
  const char* small = "around_the_smallest_normal";
  add(small, Add, {kTiny, -kTiny, kTiny, 0x1p-127, 0}, {-1.5 * kTiny, 1.5 * kTiny, 0, kTiny, -0.0});
  add(small, Sub, {kTiny, 1.5 * kTiny, 0x1p-149, 2 * kTiny, 0}, {1.5 * kTiny, kTiny, 0, kTiny, 0});
  add(small, Mul, {kTiny, -kTiny, 0x1p-64, 0x1p-127, 0x1.0008p-63},
      {0.5, 0.75, -0x1p-63, 0.5, 0x1.fffp-64});
  add(small, Div, {kTiny, -kTiny, 0x1p-127, 3 * kTiny, kTiny}, {2, 4, 1, 2, -1});
  for (const auto kind : {Add, Sub, Mul, Div, Min, Max}) {
    add("nan", kind, {kInfinity, -kInfinity, 0, kInfinity, kNan, 1, kNan, 0},
        {kInfinity, kInfinity, 0, 0, 1, kNan, kNan, kInfinity});
  }
  add("special", Pow, {0, 0, 0, kInfinity, -kInfinity, kInfinity, 1, kNan, -8, 2, 0.5},
      {0, 2, -1, 0, 3, -2, kInfinity, 0, 0.5, kInfinity, kInfinity});
  for (const auto kind : {SigmoidGradient, TanhGradient, Pow}) {
    add("nan", kind, {kNan, 1, kNan, 2, 3}, {1, kNan, kNan, 0, 1});
  }
}

}  // namespace

void add_binary_cases(std::vector<OpCase>& cases) {
  for (const auto kind : all_binary_kinds()) add_kind(cases, kind);
  add_exact_values(cases);
  add_edges(cases);
}

}  // namespace triptych::conformance
