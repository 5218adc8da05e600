// Sums, products, quotients, extremes and roots of integers and floating numbers.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tests/ptx/lanes.h"

namespace triptych::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// An operator of integers that wraps around, and of floats.
template <class T, class F>
T wrapping(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::common_type_t<Unsigned<T>, unsigned>;
    return static_cast<T>(f(static_cast<Wide>(a), static_cast<Wide>(b)));
  } else {
    return f(a, b);
  }
}

struct Add {
  template <class T>
  static T of(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Subtract {
  template <class T>
  static T of(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};
struct Multiply {
  template <class T>
  static T of(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};

/// The high half of a product. Products of 64 bits have theirs in no standard type.
struct MultiplyHigh {
  template <class T>
  static T of(T a, T b) {
    if constexpr (sizeof(T) == 8) {
      __extension__ using Wide = __int128;
      __extension__ using UnsignedWide = unsigned __int128;
      if constexpr (std::is_signed_v<T>)
        return static_cast<T>(Wide{a} * b >> 64);
      else
        return static_cast<T>(UnsignedWide{a} * b >> 64);
    } else {
      return static_cast<T>(std::int64_t{a} * b >> 8 * sizeof(T));
    }
  }
};

template <class T>
struct Twice;
template <>
struct Twice<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct Twice<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct Twice<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct Twice<std::int32_t> {
  using type = std::int64_t;
};
using Halves = TypeList<Type::U16, Type::S16, Type::U32, Type::S32>;

struct MultiplyWide {
  template <class T>
  static typename Twice<T>::type of(T a, T b) {
    using Wide = typename Twice<T>::type;
    return static_cast<Wide>(static_cast<std::int64_t>(a) * static_cast<std::int64_t>(b));
  }
};
struct MultiplyAdd {
  template <class T>
  static T of(T a, T b, T c) {
    return Add::of(Multiply::of(a, b), c);
  }
};
struct MultiplyAddWide {
  template <class T>
  static typename Twice<T>::type of(T a, T b, typename Twice<T>::type c) {
    return Add::of(MultiplyWide::of(a, b), c);
  }
};
struct FusedMultiplyAdd {
  template <class T>
  static T of(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};

/// Integers as GPUs divide: by zero gives all ones, which PTX leaves open.
struct Divide {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return static_cast<T>(-1);
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return Subtract::of(T{0}, a);
      }
    }
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T>
  static T of(T a, T b) {
    return Subtract::of(a, Multiply::of(b, Divide::of(a, b)));
  }
};

/// The number where the other operand is NaN. -0 is less than +0.
struct Minimum {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || (a == b && !std::signbit(a))) return b;
      return std::isnan(b) || a <= b ? a : b;
    } else {
      return a < b ? a : b;
    }
  }
};
struct Maximum {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || (a == b && std::signbit(a))) return b;
      return std::isnan(b) || a >= b ? a : b;
    } else {
      return a > b ? a : b;
    }
  }
};

struct Negate {
  template <class T>
  static T of(T a) {
    if constexpr (std::is_integral_v<T>)
      return Subtract::of(T{0}, a);
    else
      return -a;
  }
};
struct Absolute {
  template <class T>
  static T of(T a) {
    if constexpr (std::is_integral_v<T>)
      return a < 0 ? Negate::of(a) : a;
    else
      return std::fabs(a);
  }
};
struct SquareRoot {
  template <class T>
  static T of(T a) {
    return std::sqrt(a);
  }
};
struct Reciprocal {
  template <class T>
  static T of(T a) {
    return 1 / a;
  }
};

/// f without arithmetic, of operands and with a result that are flushed.
template <class F>
struct Flushed {
  static float flush(float a) {
    const auto bits = std::bit_cast<std::uint32_t>(a);
    return std::bit_cast<float>((bits & 0x7F800000) == 0 ? bits & 0x80000000 : bits);
  }
  static float of(float a) { return F::of(flush(a)); }
  static float of(float a, float b) { return F::of(flush(a), flush(b)); }
};

void take_operands(Decoder& decoder, std::size_t count, Type type, int target_bytes) {
  auto& at = decoder.step().at;
  const int bytes = bytes_of(type);
  if (decoder.terms() != count + 1) decoder.unknown();
  at[0] = decoder.target(0, target_bytes);
  for (std::size_t i = 1; i <= count; ++i) at[i] = decoder.source(i, bytes);
}

template <class F>
void decode_sum(Decoder& decoder) {
  const auto type = decoder.take_type();
  take_float_modifiers(decoder, type);
  take_operands(decoder, 2, type, bytes_of(type));
  const auto maker = []<class T>() -> Handler { return map2<F, T>; };
  const auto of_integers = pick(Integers(), type, maker);
  decoder.finish(of_integers != nullptr ? of_integers : pick(Floats(), type, maker));
}

void decode_product(Decoder& decoder) {
  const auto type = decoder.take_type();
  if (is_float(type)) {
    take_float_modifiers(decoder, type);
    take_operands(decoder, 2, type, bytes_of(type));
    return decoder.finish(
        pick(Floats(), type, []<class T>() -> Handler { return map2<Multiply, T>; }));
  }
  if (decoder.take("wide")) {
    take_operands(decoder, 2, type, 2 * bytes_of(type));
    return decoder.finish(pick(Halves(), type, []<class T>() -> Handler {
      return map2<MultiplyWide, T, typename Twice<T>::type>;
    }));
  }
  take_operands(decoder, 2, type, bytes_of(type));
  if (decoder.take("hi")) {
    return decoder.finish(
        pick(Integers(), type, []<class T>() -> Handler { return map2<MultiplyHigh, T>; }));
  }
  if (!decoder.take("lo")) decoder.unknown();
  decoder.finish(pick(Integers(), type, []<class T>() -> Handler { return map2<Multiply, T>; }));
}

void decode_multiply_add(Decoder& decoder) {
  const auto type = decoder.take_type();
  if (decoder.take("wide")) {
    take_operands(decoder, 2, type, 2 * bytes_of(type));
    decoder.step().at[3] = decoder.source(3, 2 * bytes_of(type));
    return decoder.finish(pick(Halves(), type, []<class T>() -> Handler {
      return map3<MultiplyAddWide, T, typename Twice<T>::type>;
    }));
  }
  if (!decoder.take("lo")) decoder.unknown();
  take_operands(decoder, 3, type, bytes_of(type));
  decoder.finish(pick(Integers(), type, []<class T>() -> Handler { return map3<MultiplyAdd, T>; }));
}

void decode_fused(Decoder& decoder) {
  const auto type = decoder.take_type();
  take_float_modifiers(decoder, type);
  take_operands(decoder, 3, type, bytes_of(type));
  decoder.finish(
      pick(Floats(), type, []<class T>() -> Handler { return map3<FusedMultiplyAdd, T>; }));
}

void decode_quotient(Decoder& decoder) {
  const auto type = decoder.take_type();
  take_float_modifiers(decoder, type);  // .approx and .full stay unread
  take_operands(decoder, 2, type, bytes_of(type));
  const auto maker = []<class T>() -> Handler { return map2<Divide, T>; };
  const auto of_integers = pick(Integers(), type, maker);
  decoder.finish(of_integers != nullptr ? of_integers : pick(Floats(), type, maker));
}

void decode_remainder(Decoder& decoder) {
  const auto type = decoder.take_type();
  take_operands(decoder, 2, type, bytes_of(type));
  decoder.finish(pick(Integers(), type, []<class T>() -> Handler { return map2<Remainder, T>; }));
}

template <class F>
void decode_extreme(Decoder& decoder) {
  const auto type = decoder.take_type();
  take_operands(decoder, 2, type, bytes_of(type));
  if (type == Type::F32 && decoder.take("ftz")) return decoder.finish(map2<Flushed<F>, float>);
  const auto maker = []<class T>() -> Handler { return map2<F, T>; };
  const auto of_integers = pick(Integers(), type, maker);
  decoder.finish(of_integers != nullptr ? of_integers : pick(Floats(), type, maker));
}

template <class F>
void decode_sign(Decoder& decoder) {
  const auto type = decoder.take_type();
  take_operands(decoder, 1, type, bytes_of(type));
  if (type == Type::F32 && decoder.take("ftz")) return decoder.finish(map1<Flushed<F>, float>);
  const auto maker = []<class T>() -> Handler { return map1<F, T>; };
  using Signed = TypeList<Type::S16, Type::S32, Type::S64, Type::F32, Type::F64>;
  decoder.finish(pick(Signed(), type, maker));
}

template <class F>
void decode_root(Decoder& decoder) {
  const auto type = decoder.take_type();
  take_float_modifiers(decoder, type);
  take_operands(decoder, 1, type, bytes_of(type));
  decoder.finish(pick(Floats(), type, []<class T>() -> Handler { return map1<F, T>; }));
}

}  // namespace

std::span<const Family> arithmetic_family() {
  static constexpr Family kFamily[] = {{"add", decode_sum<Add>},
                                       {"sub", decode_sum<Subtract>},
                                       {"mul", decode_product},
                                       {"mad", decode_multiply_add},
                                       {"fma", decode_fused},
                                       {"div", decode_quotient},
                                       {"rem", decode_remainder},
                                       {"min", decode_extreme<Minimum>},
                                       {"max", decode_extreme<Maximum>},
                                       {"neg", decode_sign<Negate>},
                                       {"abs", decode_sign<Absolute>},
                                       {"sqrt", decode_root<SquareRoot>},
                                       {"rcp", decode_root<Reciprocal>}};
  return kFamily;
}

}  // namespace triptych::ptx
