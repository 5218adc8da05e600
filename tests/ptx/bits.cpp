// Logic, shifts and parts of words. Logic of predicates.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/lanes.h"

namespace triptych::ptx {
namespace {

struct And {
  template <class T>
  static T of(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T of(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T of(T a, T b) {
    return a ^ b;
  }
};

template <class F>
void predicates(Warp& warp, const Step& step, std::uint32_t mask) {
  warp.set_predicate(step.at[0], mask,
                     F::of(warp.predicate(step.at[1]), warp.predicate(step.at[2])));
}

void not_predicate(Warp& warp, const Step& step, std::uint32_t mask) {
  warp.set_predicate(step.at[0], mask, ~warp.predicate(step.at[1]));
}

template <class F>
void decode_logic(Decoder& decoder) {
  const auto type = decoder.take_type();
  auto& at = decoder.step().at;
  if (type == Type::Pred) {
    at[0] = decoder.predicate_target(0);
    at[1] = decoder.predicate(decoder.term(1));
    at[2] = decoder.predicate(decoder.term(2));
    return decoder.finish(predicates<F>);
  }
  at = {decoder.target(0, bytes_of(type)), decoder.source(1, bytes_of(type)),
        decoder.source(2, bytes_of(type))};
  decoder.finish(pick(Words(), type, []<class T>() -> Handler { return map2<F, T>; }));
}

struct Not {
  template <class T>
  static T of(T a) {
    return static_cast<T>(~a);
  }
};

void decode_not(Decoder& decoder) {
  const auto type = decoder.take_type();
  auto& at = decoder.step().at;
  if (type == Type::Pred) {
    at[0] = decoder.predicate_target(0);
    at[1] = decoder.predicate(decoder.term(1));
    return decoder.finish(not_predicate);
  }
  at = {decoder.target(0, bytes_of(type)), decoder.source(1, bytes_of(type))};
  decoder.finish(pick(Words(), type, []<class T>() -> Handler { return map1<Not, T>; }));
}

/// Shifts by the width or more leave zeros, or the sign.
struct Left {
  template <class T>
  static T of(T a, std::uint32_t by) {
    return by < 8 * sizeof(T) ? static_cast<T>(std::uint64_t{a} << by) : T{0};
  }
};
struct Right {
  template <class T>
  static T of(T a, std::uint32_t by) {
    constexpr std::uint32_t kMost = 8 * sizeof(T) - 1;
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(a >> std::min(by, kMost));
    else
      return by > kMost ? T{0} : static_cast<T>(a >> by);
  }
};

template <class F, class T>
void shift(Warp& warp, const Step& step, std::uint32_t mask) {
  auto* d = warp.lanes<BitsOf<T>>(step.at[0]);
  const auto* a = warp.lanes<BitsOf<T>>(step.at[1]);
  const auto* by = warp.lanes<std::uint32_t>(step.at[2]);
  for_lanes(mask, [=](int i) { d[i] = bits_of<T>(F::of(value_of<T>(a[i]), by[i])); });
}

template <class F, class Types>
void decode_shift(Decoder& decoder) {
  const auto type = decoder.take_type();
  decoder.step().at = {decoder.target(0, bytes_of(type)), decoder.source(1, bytes_of(type)),
                       decoder.source(2, 4)};
  decoder.finish(pick(Types(), type, []<class T>() -> Handler { return shift<F, T>; }));
}

/// The funnel shift: 32 bits of b:a, a the low word.
template <bool kLeft, bool kWrap>
struct Funnel {
  static std::uint32_t of(std::uint32_t a, std::uint32_t b, std::uint32_t by) {
    by = kWrap ? by & 31 : std::min(by, 32U);
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    return static_cast<std::uint32_t>(kLeft ? both << by >> 32 : both >> by);
  }
};

void decode_funnel(Decoder& decoder) {
  decoder.step().at = {decoder.target(0, 4), decoder.source(1, 4), decoder.source(2, 4),
                       decoder.source(3, 4)};
  if (decoder.take_type() != Type::U32) decoder.unknown();
  const bool left = decoder.take("l");
  if (!left && !decoder.take("r")) decoder.unknown();
  const bool wrap = decoder.take("wrap");
  if (!wrap && !decoder.take("clamp")) decoder.unknown();
  decoder.finish(left   ? wrap ? map3<Funnel<true, true>, std::uint32_t>
                               : map3<Funnel<true, false>, std::uint32_t>
                   : wrap ? map3<Funnel<false, true>, std::uint32_t>
                        : map3<Funnel<false, false>, std::uint32_t>);
}

/// Four bytes chosen from the eight of b:a, each by four bits. The highest bit repeats the chosen
/// byte's sign.
struct Permute {
  static std::uint32_t of(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    std::uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const auto choice = selector >> 4 * i & 0xF;
      auto byte = static_cast<std::uint32_t>(both >> 8 * (choice & 7)) & 0xFF;
      if ((choice & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
      result |= byte << 8 * i;
    }
    return result;
  }
};

void decode_permute(Decoder& decoder) {
  decoder.step().at = {decoder.target(0, 4), decoder.source(1, 4), decoder.source(2, 4),
                       decoder.source(3, 4)};
  if (decoder.take_type() != Type::U32) decoder.unknown();
  decoder.finish(map3<Permute, std::uint32_t>);
}

/// `length` bits of a, or of b from `begin` on with those in their place. Past the end none.
std::uint32_t field_mask(std::uint32_t begin, std::uint32_t length) {
  const auto bits = ((std::uint64_t{1} << std::min(length & 0xFF, 32U)) - 1) << (begin & 0xFF);
  return (begin & 0xFF) < 32 ? static_cast<std::uint32_t>(bits) : 0;
}

void insert_field(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto lanes = [&](std::size_t i) { return warp.lanes<std::uint32_t>(step.at[i]); };
  auto* d = lanes(0);
  const auto *a = lanes(1), *b = lanes(2), *begins = lanes(3), *lengths = lanes(4);
  for_lanes(mask, [=](int i) {
    const auto field = field_mask(begins[i], lengths[i]);
    d[i] = (b[i] & ~field) | (Left::of(a[i], begins[i] & 0xFF) & field);
  });
}

void decode_insert(Decoder& decoder) {
  decoder.step().at = {decoder.target(0, 4), decoder.source(1, 4), decoder.source(2, 4),
                       decoder.source(3, 4), decoder.source(4, 4)};
  if (decoder.take_type() != Type::U32) decoder.unknown();
  decoder.finish(insert_field);
}

struct CountOnes {
  template <class T>
  static std::uint32_t of(T a) {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct LeadingZeros {
  template <class T>
  static std::uint32_t of(T a) {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};

template <class F>
void decode_count(Decoder& decoder) {
  const auto type = decoder.take_type();
  decoder.step().at = {decoder.target(0, 4), decoder.source(1, bytes_of(type))};
  decoder.finish(pick(TypeList<Type::U32, Type::U64>(), type,
                      []<class T>() -> Handler { return map1<F, T, std::uint32_t>; }));
}

}  // namespace

std::span<const Family> bits_family() {
  using Signed = TypeList<Type::U16, Type::S16, Type::U32, Type::S32, Type::U64, Type::S64>;
  static constexpr Family kFamily[] = {{"and", decode_logic<And>},
                                       {"or", decode_logic<Or>},
                                       {"xor", decode_logic<Xor>},
                                       {"not", decode_not},
                                       {"shl", decode_shift<Left, Words>},
                                       {"shr", decode_shift<Right, Signed>},
                                       {"shf", decode_funnel},
                                       {"prmt", decode_permute},
                                       {"bfi", decode_insert},
                                       {"popc", decode_count<CountOnes>},
                                       {"clz", decode_count<LeadingZeros>}};
  return kFamily;
}

}  // namespace triptych::ptx
