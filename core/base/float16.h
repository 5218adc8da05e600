// bfloat16 and float16 as storage types: conversions only, arithmetic happens in float32.
// Rounding is to nearest, ties to even. Every NaN becomes one canonical quiet NaN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"

namespace triptych {

/// The upper 16 bits of `value` rounded to nearest even. NaN becomes 0x7FC0. Subnormals are
/// preserved.
TRIPTYCH_HOST_DEVICE constexpr std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FC0;
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// The float32 with the upper half `bits`, exact.
TRIPTYCH_HOST_DEVICE constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// `value` rounded to bfloat16 and back.
TRIPTYCH_HOST_DEVICE constexpr float round_to_bf16(float value) {
  return bf16_to_float(bf16_bits(value));
}

/// IEEE binary16 bits of `value`, rounded to nearest even. Overflow gives infinity.
TRIPTYCH_HOST_DEVICE inline std::uint16_t f16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return 0x7E00;
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // >= 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: a float16 subnormal, a multiple of 2^-24
    const float scaled = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f);
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(scaled));
  }
  const std::uint32_t rebased = magnitude - (112u << 23);  // exponent bias 127 to 15
  return static_cast<std::uint16_t>(sign | ((rebased + 0xFFFu + ((rebased >> 13) & 1u)) >> 13));
}

/// The float32 equal to the IEEE binary16 `bits`, exact.
TRIPTYCH_HOST_DEVICE inline float f16_to_float(std::uint16_t bits) {
  const float sign = (bits & 0x8000u) != 0 ? -1.0F : 1.0F;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1p-24F;
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return sign * std::bit_cast<float>((wide << 23) | (mantissa << 13));
}

/// A bfloat16 in memory.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  TRIPTYCH_HOST_DEVICE explicit constexpr BFloat16(float value) : bits(bf16_bits(value)) {}
  TRIPTYCH_HOST_DEVICE explicit constexpr operator float() const { return bf16_to_float(bits); }
};

/// An IEEE binary16 in memory.
struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  TRIPTYCH_HOST_DEVICE explicit Float16(float value) : bits(f16_bits(value)) {}
  TRIPTYCH_HOST_DEVICE explicit operator float() const { return f16_to_float(bits); }
};

}  // namespace triptych
