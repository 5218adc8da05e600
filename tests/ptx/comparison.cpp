// Comparisons, and selections by their results.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/ptx/lanes.h"

namespace triptych::ptx {
namespace {

/// Ordered: false when an operand is not a number. The unordered ones are then true.
struct Equal {
  template <class T>
  static bool of(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static bool of(T a, T b) {
    return a < b || a > b;
  }
};
struct Less {
  template <class T>
  static bool of(T a, T b) {
    return a < b;
  }
};
struct LessOrEqual {
  template <class T>
  static bool of(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  static bool of(T a, T b) {
    return a > b;
  }
};
struct GreaterOrEqual {
  template <class T>
  static bool of(T a, T b) {
    return a >= b;
  }
};
struct BothNumbers {
  template <class T>
  static bool of(T a, T b) {
    return a == a && b == b;
  }
};
template <class F>
struct Contrary {
  template <class T>
  static bool of(T a, T b) {
    return !F::of(a, b);
  }
};

enum Combination : std::int64_t { kAlone, kAnd, kOr, kXor };

/// p = a F b. With a further predicate: p = (a F b) and/or/xor c, q = not (a F b) and/or/xor c.
template <class F, class T>
void set_predicate(Warp& warp, const Step& step, std::uint32_t mask) {
  prepare(step);
  const auto* a = warp.lanes<BitsOf<T>>(step.at[2]);
  const auto* b = warp.lanes<BitsOf<T>>(step.at[3]);
  std::uint32_t found = 0;
  for (int i = 0; i < kLanes; ++i) {
    found |= static_cast<std::uint32_t>(F::of(value_of<T>(a[i]), value_of<T>(b[i]))) << i;
  }
  const auto other = step.number == kAlone ? 0 : warp.predicate(step.at[4]);
  const auto combined = [&](std::uint32_t bits) {
    return step.number == kAnd   ? bits & other
           : step.number == kOr  ? bits | other
           : step.number == kXor ? bits ^ other
                                 : bits;
  };
  warp.set_predicate(step.at[0], mask, combined(found));
  if (step.list_size != 0) {
    warp.set_predicate(warp.block().launch().program.list[step.list], mask, combined(~found));
  }
}

template <class F>
Handler comparison(Type type) {
  const auto maker = []<class T>() -> Handler { return set_predicate<F, T>; };
  const auto of_integers = pick(Integers(), type, maker);
  return of_integers != nullptr ? of_integers : pick(Floats(), type, maker);
}

struct Named {
  std::string_view name;
  Handler (*handler)(Type type);
  bool for_floats_only = false;
};
constexpr Named kComparisons[] = {{"eq", comparison<Equal>},
                                  {"ne", comparison<NotEqual>},
                                  {"lt", comparison<Less>},
                                  {"le", comparison<LessOrEqual>},
                                  {"gt", comparison<Greater>},
                                  {"ge", comparison<GreaterOrEqual>},
                                  {"lo", comparison<Less>},
                                  {"ls", comparison<LessOrEqual>},
                                  {"hi", comparison<Greater>},
                                  {"hs", comparison<GreaterOrEqual>},
                                  {"equ", comparison<Contrary<NotEqual>>, true},
                                  {"neu", comparison<Contrary<Equal>>, true},
                                  {"ltu", comparison<Contrary<GreaterOrEqual>>, true},
                                  {"leu", comparison<Contrary<Greater>>, true},
                                  {"gtu", comparison<Contrary<LessOrEqual>>, true},
                                  {"geu", comparison<Contrary<Less>>, true},
                                  {"num", comparison<BothNumbers>, true},
                                  {"nan", comparison<Contrary<BothNumbers>>, true}};

void decode_set_predicate(Decoder& decoder) {
  const auto word = decoder.take_front();
  auto& step = decoder.step();
  step.number = decoder.take("and")   ? kAnd
                : decoder.take("or")  ? kOr
                : decoder.take("xor") ? kXor
                                      : kAlone;
  const auto type = decoder.take_type();
  if (type == Type::F32 && decoder.take("ftz")) step.float_control |= kFlush;
  const std::size_t sources = step.number == kAlone ? 2 : 3;
  const bool pair = decoder.terms() == sources + 2;
  const std::size_t first = pair ? 2 : 1;
  step.at[0] = decoder.predicate_target(0);
  if (pair) decoder.append(decoder.predicate_target(1));
  step.at[2] = decoder.source(first, bytes_of(type));
  step.at[3] = decoder.source(first + 1, bytes_of(type));
  if (step.number != kAlone) step.at[4] = decoder.predicate(decoder.term(first + 2));
  for (const auto& one : kComparisons) {
    if (one.name != word || (one.for_floats_only && !is_float(type))) continue;
    return decoder.finish(one.handler(type));
  }
  decoder.unknown();
}

template <class T>
void select(Warp& warp, const Step& step, std::uint32_t mask) {
  auto* d = warp.lanes<T>(step.at[0]);
  const auto* a = warp.lanes<T>(step.at[1]);
  const auto* b = warp.lanes<T>(step.at[2]);
  const auto chosen = warp.predicate(step.at[3]);
  for_lanes(mask, [=](int i) { d[i] = (chosen >> i & 1) != 0 ? a[i] : b[i]; });
}

void decode_select(Decoder& decoder) {
  const int bytes = bytes_of(decoder.take_type());
  decoder.step().at = {decoder.target(0, bytes), decoder.source(1, bytes), decoder.source(2, bytes),
                       decoder.predicate(decoder.term(3))};
  decoder.finish(bytes == 2   ? select<std::uint16_t>
                 : bytes == 4 ? select<std::uint32_t>
                 : bytes == 8 ? select<std::uint64_t>
                              : nullptr);
}

}  // namespace

std::span<const Family> comparison_family() {
  static constexpr Family kFamily[] = {{"setp", decode_set_predicate}, {"selp", decode_select}};
  return kFamily;
}

}  // namespace triptych::ptx
