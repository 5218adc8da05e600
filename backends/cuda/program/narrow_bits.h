// The bits of bfloat16 and of IEEE binary16 as floats, and rounded to nearest, ties to even.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace triptych::cuda::program {

/// The upper half of a float, rounded.
inline unsigned short bits_of_bfloat16(float value) {
  const auto bits = __builtin_bit_cast(unsigned, value);
  if (value != value) return 0x7FFF;
  return static_cast<unsigned short>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}
inline float float_of_bfloat16(unsigned short bits) {
  return __builtin_bit_cast(float, static_cast<unsigned>(bits) << 16);
}

/// IEEE binary16, with subnormals. The addition of a power of two rounds at the right bit.
inline unsigned short bits_of_half(float value) {
  const auto bits = __builtin_bit_cast(unsigned, value);
  const unsigned sign = bits >> 16 & 0x8000U, magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return 0x7FFF;
  if (magnitude >= 0x477FF000U) return static_cast<unsigned short>(sign | 0x7C00U);
  if (magnitude < 0x38800000U) {  // subnormal: units of 2^-24
    const float scaled = __builtin_bit_cast(float, magnitude) + 0.5F;
    return static_cast<unsigned short>(sign | (__builtin_bit_cast(unsigned, scaled) - 0x3F000000U));
  }
  const unsigned rounded = magnitude + 0xFFFU + (magnitude >> 13 & 1U);
  return static_cast<unsigned short>(sign | ((rounded - 0x38000000U) >> 13));
}
/// Without branches, so that compilers convert several values at once.
inline float float_of_half(unsigned short bits) {
  const unsigned sign = (bits & 0x8000U) << 16, magnitude = bits & 0x7FFFU;
  const float in_units = static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24F;
  const unsigned subnormal = __builtin_bit_cast(unsigned, in_units);
  const unsigned normal = (magnitude << 13) + (112U << 23);
  const unsigned beyond = magnitude << 13 | 0x7F800000U;
  const unsigned value = magnitude >= 0x7C00U ? beyond : magnitude >= 0x400U ? normal : subnormal;
  return __builtin_bit_cast(float, sign | value);
}

}  // namespace triptych::cuda::program
