// Steps that do the same in each lane: d = f(a, b, ...).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <type_traits>

#include "tests/ptx/decoder.h"
#include "tests/ptx/float_control.h"
#include "tests/ptx/machine.h"

namespace triptych::ptx {

template <std::size_t kBytes>
using Bits = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t,
                       std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;
template <class T>
using BitsOf = Bits<sizeof(T)>;

template <class T>
T value_of(BitsOf<T> bits) {
  return std::bit_cast<T>(bits);
}

/// A result in f32 that is not a number is always this one.
inline constexpr std::uint32_t kNan = 0x7FFFFFFF;

template <class T>
BitsOf<T> bits_of(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}
template <>
inline std::uint32_t bits_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7FFFFFFF) > 0x7F800000 ? kNan : bits;
}

inline void prepare(const Step& step) { set_float_control(step.float_control); }

template <class F, class T, class To = T>
void map1(Warp& warp, const Step& step, std::uint32_t mask) {
  prepare(step);
  auto* d = warp.lanes<BitsOf<To>>(step.at[0]);
  const auto* a = warp.lanes<BitsOf<T>>(step.at[1]);
  for_lanes(mask, [=](int i) { d[i] = bits_of<To>(F::of(value_of<T>(a[i]))); });
}

template <class F, class T, class To = T>
void map2(Warp& warp, const Step& step, std::uint32_t mask) {
  prepare(step);
  auto* d = warp.lanes<BitsOf<To>>(step.at[0]);
  const auto* a = warp.lanes<BitsOf<T>>(step.at[1]);
  const auto* b = warp.lanes<BitsOf<T>>(step.at[2]);
  for_lanes(mask, [=](int i) { d[i] = bits_of<To>(F::of(value_of<T>(a[i]), value_of<T>(b[i]))); });
}

/// The last operand as wide as the result: mad.wide.
template <class F, class T, class To = T>
void map3(Warp& warp, const Step& step, std::uint32_t mask) {
  prepare(step);
  auto* d = warp.lanes<BitsOf<To>>(step.at[0]);
  const auto* a = warp.lanes<BitsOf<T>>(step.at[1]);
  const auto* b = warp.lanes<BitsOf<T>>(step.at[2]);
  const auto* c = warp.lanes<BitsOf<To>>(step.at[3]);
  for_lanes(mask, [=](int i) {
    d[i] = bits_of<To>(F::of(value_of<T>(a[i]), value_of<T>(b[i]), value_of<To>(c[i])));
  });
}

/// The handler that kMake returns for the type, if it is in the list, otherwise null.
template <Type kType>
struct CppType;
template <>
struct CppType<Type::U8> {
  using type = std::uint8_t;
};
template <>
struct CppType<Type::S8> {
  using type = std::int8_t;
};
template <>
struct CppType<Type::U16> {
  using type = std::uint16_t;
};
template <>
struct CppType<Type::S16> {
  using type = std::int16_t;
};
template <>
struct CppType<Type::U32> {
  using type = std::uint32_t;
};
template <>
struct CppType<Type::S32> {
  using type = std::int32_t;
};
template <>
struct CppType<Type::U64> {
  using type = std::uint64_t;
};
template <>
struct CppType<Type::S64> {
  using type = std::int64_t;
};
template <>
struct CppType<Type::F32> {
  using type = float;
};
template <>
struct CppType<Type::F64> {
  using type = double;
};

template <Type... kTypes>
struct TypeList {};
using Integers = TypeList<Type::U16, Type::S16, Type::U32, Type::S32, Type::U64, Type::S64>;
using Floats = TypeList<Type::F32, Type::F64>;
using Words = TypeList<Type::U16, Type::U32, Type::U64>;

/// maker.template operator()<T>() for the C++ type of `type` if it is in the list, otherwise null.
template <Type... kTypes, class Maker>
Handler pick(TypeList<kTypes...>, Type type, Maker maker) {
  Handler handler = nullptr;
  ((type == kTypes
        ? static_cast<void>(handler = maker.template operator()<typename CppType<kTypes>::type>())
        : static_cast<void>(0)),
   ...);
  return handler;
}

/// The modifiers of floating arithmetic, as the step's float control.
inline void take_float_modifiers(Decoder& decoder, Type type) {
  auto& control = decoder.step().float_control;
  if (decoder.take("rz")) control |= kRoundToZero;
  if (decoder.take("rm")) control |= kRoundDown;
  if (decoder.take("rp")) control |= kRoundUp;
  static_cast<void>(decoder.take("rn"));
  if (type == Type::F32 && decoder.take("ftz")) control |= kFlush;
}

}  // namespace triptych::ptx
