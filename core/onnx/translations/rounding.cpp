// Rounding, remainders, and tests for infinity and NaN.
// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/translations/rounding.h"

#include <limits>

#include "core/onnx/translations/arithmetic.h"

namespace triptych::onnx {
namespace {

/// From here on every float32 is a whole number.
constexpr double kWhole = 0x1p23;

/// x where it is too large for a fraction or not a number, otherwise `rounded`.
ValueId unless_whole(const NodeImport& n, ValueId x, ValueId rounded) {
  const auto small = n.f.apply(BinaryKind::Less, n.f.apply(UnaryKind::Abs, x), kWhole);
  return n.f.select(small, rounded, x);
}

std::vector<ValueId> round(NodeImport& n) { return {n.like(0, round_to_even(n, n.f32(0)))}; }

std::vector<ValueId> floor(NodeImport& n) { return {n.like(0, floor_of(n, n.f32(0)))}; }

std::vector<ValueId> ceil(NodeImport& n) {
  const auto negated = n.f.apply(UnaryKind::Neg, n.f32(0));
  return {n.like(0, n.f.apply(UnaryKind::Neg, floor_of(n, negated)))};
}

/// The remainder of whole numbers: of the divisor's sign, or with fmod of the dividend's.
std::vector<ValueId> mod(NodeImport& n) {
  const bool of_dividend = n.flag("fmod");
  n.refuse_unless(!is_floating(n.dtype(0)), "floating-point remainders");
  const auto a = n.in(0), b = n.in(1);
  const auto whole = arithmetic(n, BinaryKind::Mul, arithmetic(n, BinaryKind::Div, a, b), b);
  const auto rest = arithmetic(n, BinaryKind::Sub, a, whole);
  if (of_dividend || n.dtype(0) == DType::U8) return {rest};
  const auto zero = n.filled({n.dtype(0), Shape{}}, 0);
  const auto signs_differ = n.f.apply(
      UnaryKind::Not, compare(n, BinaryKind::Equal, compare(n, BinaryKind::Less, rest, zero),
                              compare(n, BinaryKind::Less, b, zero)));
  const auto is_zero = compare(n, BinaryKind::Equal, rest, zero);
  const auto turns = n.f.apply(BinaryKind::And, signs_differ, n.f.apply(UnaryKind::Not, is_zero));
  return {n.f.select(turns, arithmetic(n, BinaryKind::Add, rest, b), rest)};
}

std::vector<ValueId> is_nan(NodeImport& n) {
  return {n.f.apply(UnaryKind::Not, n.f.apply(BinaryKind::Equal, n.in(0), n.in(0)))};
}

std::vector<ValueId> is_inf(NodeImport& n) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool positive = n.flag("detect_positive", true), negative = n.flag("detect_negative", true);
  const auto x = n.in(0);
  if (!positive && !negative) return {n.filled({DType::Bool, n.shape(0)}, 0)};
  const auto measured = positive && negative ? n.f.apply(UnaryKind::Abs, x) : x;
  return {n.f.apply(BinaryKind::Equal, measured, positive ? infinity : -infinity)};
}

/// x - bias above lambd, x + bias below -lambd, else 0.
std::vector<ValueId> shrink(NodeImport& n) {
  const double bias = n.number("bias", 0), lambd = n.number("lambd", 0.5F);
  const auto x = n.in(0);
  const auto low = n.f.select(n.f.apply(BinaryKind::Less, x, -lambd), n.f.add(x, bias), 0.0);
  return {n.f.select(n.f.apply(BinaryKind::Greater, x, lambd), n.f.sub(x, bias), low)};
}

}  // namespace

ValueId round_to_even(const NodeImport& n, ValueId x) {
  const auto size = n.f.apply(UnaryKind::Abs, x);
  const auto rounded = n.f.sub(n.f.add(size, kWhole), kWhole);
  return unless_whole(n, x, n.f.mul(rounded, n.f.apply(UnaryKind::Sign, x)));
}

ValueId floor_of(const NodeImport& n, ValueId x) {
  const auto near = round_to_even(n, x);
  const auto above = n.f.apply(BinaryKind::Greater, near, x);
  return n.f.select(above, n.f.sub(near, 1.0), near);
}

void add_rounding_translations(TranslationList& list) {
  list.insert(list.end(), {{"Round", round},
                           {"Floor", floor},
                           {"Ceil", ceil},
                           {"Mod", mod},
                           {"IsNaN", is_nan},
                           {"IsInf", is_inf},
                           {"Shrink", shrink}});
}

}  // namespace triptych::onnx
