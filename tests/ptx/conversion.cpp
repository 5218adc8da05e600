// Conversions between types.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/ptx/lanes.h"

namespace triptych::ptx {
namespace {

enum class Rounding { None, Nearest, ToZero, Down, Up };

template <class T>
T rounded(T value, Rounding rounding) {
  switch (rounding) {
    case Rounding::Nearest:
      return std::nearbyint(value);
    case Rounding::ToZero:
      return std::trunc(value);
    case Rounding::Down:
      return std::floor(value);
    case Rounding::Up:
      return std::ceil(value);
    default:
      return value;
  }
}

/// NaN becomes 0, and too large values the largest.
template <class To, class From>
To to_integer(From value) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(value)) return 0;
  // The largest integer may not be a floating number. The first one beyond it is.
  const From beyond = std::ldexp(From{1}, Limits::digits);
  if (value >= beyond) return Limits::max();
  if (value < static_cast<From>(Limits::min())) return Limits::min();
  return static_cast<To>(value);
}

template <class To, class From>
To converted(From value, Rounding rounding) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return to_integer<To>(rounded(value, rounding));
  } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<From, To>) {
    return rounded(value, rounding);
  } else {
    return static_cast<To>(value);
  }
}

/// A source may be wider than its type. Its low bytes count. A target, too, which is filled by the
/// sign or zeros.
template <class To, class From>
void convert(Warp& warp, const Step& step, std::uint32_t mask) {
  prepare(step);
  auto* d = warp.lanes<std::uint8_t>(step.at[0]);
  const auto* a = warp.lanes<std::uint8_t>(step.at[1]);
  const int d_bytes = step.at[0].bytes, a_bytes = step.at[1].bytes;
  const auto rounding = static_cast<Rounding>(step.number);
  for_lanes(mask, [=](int i) {
    BitsOf<From> bits;
    std::memcpy(&bits, a + i * a_bytes, sizeof bits);
    const To result = converted<To>(value_of<From>(bits), rounding);
    auto wide = std::uint64_t{bits_of<To>(result)};
    if constexpr (std::is_integral_v<To> && std::is_signed_v<To>) {
      wide = static_cast<std::uint64_t>(static_cast<std::int64_t>(result));
    }
    std::memcpy(d + i * d_bytes, &wide, static_cast<std::size_t>(d_bytes));
  });
}

using All = TypeList<Type::U8, Type::S8, Type::U16, Type::S16, Type::U32, Type::S32, Type::U64,
                     Type::S64, Type::F32, Type::F64>;

Handler conversion(Type to, Type from) {
  return pick(All(), to, [from]<class To>() -> Handler {
    return pick(All(), from, []<class From>() -> Handler { return convert<To, From>; });
  });
}

/// bfloat16 to the nearest, ties to even. Values that are no numbers become 0x7FFF.
std::uint16_t to_bf16(std::uint32_t bits) {
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void to_bf16_step(Warp& warp, const Step& step, std::uint32_t mask) {
  auto* d = warp.lanes<std::uint16_t>(step.at[0]);
  const auto* a = warp.lanes<std::uint32_t>(step.at[1]);
  for_lanes(mask, [=](int i) { d[i] = to_bf16(a[i]); });
}

/// The first source is the high half.
void to_bf16_pair(Warp& warp, const Step& step, std::uint32_t mask) {
  auto* d = warp.lanes<std::uint32_t>(step.at[0]);
  const auto* high = warp.lanes<std::uint32_t>(step.at[1]);
  const auto* low = warp.lanes<std::uint32_t>(step.at[2]);
  for_lanes(mask, [=](int i) { d[i] = std::uint32_t{to_bf16(high[i])} << 16 | to_bf16(low[i]); });
}

void decode_to_bf16(Decoder& decoder, bool pair) {
  auto& at = decoder.step().at;
  if (!decoder.take("rn") || decoder.take_type() != Type::F32) decoder.unknown();
  if (pair) {
    at = {decoder.target(0, 4), decoder.source(1, 4), decoder.source(2, 4)};
    return decoder.finish(to_bf16_pair);
  }
  at = {decoder.target(0, 2), decoder.source(1, 4)};
  decoder.finish(to_bf16_step);
}

void take_rounding(Decoder& decoder) {
  constexpr std::pair<std::string_view, Rounding> kToInteger[] = {{"rni", Rounding::Nearest},
                                                                  {"rzi", Rounding::ToZero},
                                                                  {"rmi", Rounding::Down},
                                                                  {"rpi", Rounding::Up}};
  for (const auto& [word, rounding] : kToInteger) {
    if (decoder.take(word)) decoder.step().number = static_cast<std::int64_t>(rounding);
  }
}

void decode_convert(Decoder& decoder) {
  if (decoder.take("bf16x2")) return decode_to_bf16(decoder, true);
  take_rounding(decoder);
  auto& step = decoder.step();
  const auto ftz = decoder.take("ftz");
  const auto to = decoder.take_type();
  if (to == Type::Bf16) return decode_to_bf16(decoder, false);
  const auto from = decoder.take_type();
  if (ftz) {
    if (to != Type::F32 && from != Type::F32) decoder.unknown();
    step.float_control |= kFlush;
  }
  take_float_modifiers(decoder, to);
  step.at = {decoder.wide_target(decoder.term(0), bytes_of(to)),
             decoder.wide_source(decoder.term(1), bytes_of(from))};
  decoder.finish(conversion(to, from));
}

}  // namespace

std::span<const Family> conversion_family() {
  static constexpr Family kFamily[] = {{"cvt", decode_convert}};
  return kFamily;
}

}  // namespace triptych::ptx
