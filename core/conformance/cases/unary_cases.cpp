// SPDX-License-Identifier: Apache-2.0
#include "core/ops/unary.h"

#include <fmt/core.h>

#include <limits>

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

using enum UnaryKind;

struct Interval {
  double low, high;
};

/// Where the function is defined and its values are of moderate size.
Interval range_of(UnaryKind kind) {
  if (kind == Not) return {0, 1};
  if (kind == Log || kind == Sqrt || kind == Reciprocal) return {0.5, 2};
  return {-2, 2};
}

bool takes(UnaryKind kind, DType dtype) {
  try {
    const TensorSpec x{dtype, {}};
    Unary(kind).infer({&x, 1});
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

void add_kind(std::vector<OpCase>& cases, UnaryKind kind) {
  const auto [low, high] = range_of(kind);
  const auto op = make_op(Unary(kind));
  const auto usual = kind == Not ? DType::Bool : DType::F32;
  const bool smooth = kind != Not;
  cases.push_back({"rank4", op, {of(usual, {2, 3, 5, 7}, low, high)}, smooth});
  cases.push_back({"rank0", op, {of(usual, {}, low, high)}, smooth});
  cases.push_back({"vector_tail", op, {of(usual, {1037}, low, high)}, smooth});
  cases.push_back({"many", op, {of(usual, {3, 41, 1021}, low, high)}, false});
  for (const auto dtype : {DType::BF16, DType::F16, DType::I8, DType::I32, DType::I64}) {
    if (!takes(kind, dtype)) continue;
    const double scale = is_floating(dtype) ? 1 : 20;
    cases.push_back({std::string(to_string(dtype)),
                     op,
                     {of(dtype, {5, 67}, low * scale, high * scale)},
                     false});
  }
}

void add_values(std::vector<OpCase>& cases, std::string name, UnaryKind kind,
                std::vector<double> values, DType dtype = DType::F32) {
  const auto size = static_cast<std::int64_t>(values.size());
  cases.push_back(
      {std::move(name), make_op(Unary(kind)), {exactly(dtype, {size}, std::move(values))}, false});
}

void add_extremes(std::vector<OpCase>& cases) {
  add_values(cases, "large", Exp, {-120, -87, -80, -1e-6, 0, 1e-6, 80, 88});
  add_values(cases, "large", Sigmoid, {-120, -88, -30, -1e-5, 0, 1e-5, 30, 88, 120});
  add_values(cases, "large", Tanh, {-90, -10, -0.5, -1e-4, -1e-20, 0, 1e-4, 0.5, 10, 90});
  add_values(cases, "large", Erf, {-30, -5, -0.5, -1e-4, 0, 1e-4, 0.5, 3.9, 30});
  add_values(cases, "large", Gelu, {-30, -6, -3, -0.5, -1e-4, 0, 1e-4, 0.5, 6, 30});
  add_values(cases, "large", Log, {1e-30, 1e-3, 0.999, 1, 1.001, 1e3, 1e30});
  add_values(cases, "large", Sqrt, {0, 1e-30, 1e-3, 1, 2, 4, 1e30});
  add_values(cases, "large", Reciprocal, {-1e30, -1e-30, -3, 3, 1e-30, 1e30});
  add_values(cases, "large", Elu, {-1e30, -100, -25, -1, -1e-3, -1e-7, 0, 1e-7, 1, 100, 1e30});
  add_values(cases, "large", Softplus,
             {-1e30, -100, -88, -30, -17, -12.3, -1, 0, 1, 17, 100, 1e30});
  add_values(cases, "large", Softsign, {-3e38, -1e5, -1, -1e-7, 0, 1e-7, 1, 1e5, 3e38});
  for (const auto kind : {Relu, LeakyRelu, Abs, Sign}) {
    add_values(cases, "at_zero", kind, {-1, -1e-30, 0, 1e-30, 1});
  }
  for (const auto kind : {Neg, Abs}) {
    add_values(cases, "smallest_i8_wraps", kind, {-128, -127, 0, 127}, DType::I8);
  }
}

/// Around the smallest normal number, where subnormals count as zero, and all ways to a NaN. (Sqrt
/// and Reciprocal would make normal numbers of subnormals, and Sign ones.)
void add_edges(std::vector<OpCase>& cases) {
  constexpr double kTiny = 0x1p-126, kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> edges = {
      kTiny,    -kTiny,    0x1.fffffcp-127, -0x1.fffffcp-127, 0x1p-127, -0x1p-127,
      0x1p-149, -0x1p-149, 3 * kTiny,       -3 * kTiny,       0,        -0.0};
  for (const auto kind :
       {Relu, LeakyRelu, Sigmoid, Tanh, Exp, Neg, Abs, Erf, Gelu, Elu, Softsign}) {
    add_values(cases, "around_the_smallest_normal", kind, edges);
    if (kind != Neg && kind != Abs) add_values(cases, "nan", kind, {kNan, 1, kNan, kNan, kNan});
  }
  add_values(cases, "around_the_smallest_normal", Sqrt, {kTiny, 3 * kTiny, 0, -0.0, -kTiny});
  for (const auto kind : {Log, Sign, Clip, Softplus}) {
    add_values(cases, "nan", kind, {kNan, 1, kNan, kNan, kNan});
  }
  for (const auto kind : all_unary_kinds()) {
    if (kind != Not) add_values(cases, "infinite", kind, {kInfinity, -kInfinity, kInfinity});
  }
  add_values(cases, "nan", Sqrt, {-1, -kInfinity, kNan, 4, kInfinity});
  add_values(cases, "nan", Reciprocal, {kNan, 0, -0.0, kInfinity, 2});
}

void add_attributes(std::vector<OpCase>& cases) {
  Unary leaky(LeakyRelu);
  leaky.alpha = 0.2F;
  cases.push_back({"alpha", make_op(leaky), {f32({3, 17})}});
  Unary gelu(Gelu);
  gelu.approximate = "tanh";
  cases.push_back({"tanh_large",
                   make_op(gelu),
                   {exactly(DType::F32, {6}, {-1e30, -1e19, -6, 6, 1e19, 1e30})},
                   false});
  cases.push_back({"tanh", make_op(gelu), {f32({2, 53}, -4, 4)}});
  cases.push_back({"tanh_bf16", make_op(gelu), {of(DType::BF16, {2, 53}, -4, 4)}, false});
  Unary elu(Elu);
  elu.alpha = 0.3F;
  cases.push_back({"alpha", make_op(elu), {f32({3, 17}, -4, 4)}, false});
  Unary clip(Clip);
  clip.min = -0.5F;
  clip.max = 0.25F;
  cases.push_back({"both_sides", make_op(clip), {f32({4, 31})}});
  Unary below = clip;
  below.min = Unary().min;
  cases.push_back({"from_above", make_op(below), {f32({4, 31})}});
  Unary crossed = clip;
  crossed.min = 1;
  cases.push_back({"max_wins_when_crossed", make_op(crossed), {f32({9})}, false});
  Unary whole(Clip);
  whole.min = -3;
  whole.max = 4;
  for (const auto dtype : {DType::I8, DType::I32, DType::I64}) {
    cases.push_back({fmt::format("both_sides_{}", to_string(dtype)),
                     make_op(whole),
                     {of(dtype, {40}, -10, 10)},
                     false});
  }
}

}  // namespace

void add_unary_cases(std::vector<OpCase>& cases) {
  for (const auto kind : all_unary_kinds()) add_kind(cases, kind);
  add_extremes(cases);
  add_edges(cases);
  add_attributes(cases);
}

}  // namespace triptych::conformance
