// bfloat16 and float16 as storage types: conversions only, arithmetic happens in float32.
// Rounding is to nearest, ties to even; every NaN becomes one canonical quiet NaN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace triptych {

/// The upper 16 bits of `value` rounded to nearest even; NaN becomes 0x7FC0. Subnormals are kept.
constexpr std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FC0;
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// The float32 whose upper half is `bits`; exact.
constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// `value` rounded to bfloat16 and back.
constexpr float round_to_bf16(float value) { return bf16_to_float(bf16_bits(value)); }

/// IEEE binary16 bits of `value`, rounded to nearest even; overflow gives infinity.
std::uint16_t f16_bits(float value);

/// The float32 equal to the IEEE binary16 `bits`; exact.
float f16_to_float(std::uint16_t bits);

/// A bfloat16 in memory.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit constexpr BFloat16(float value) : bits(bf16_bits(value)) {}
  explicit constexpr operator float() const { return bf16_to_float(bits); }
};

/// An IEEE binary16 in memory.
struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value) : bits(f16_bits(value)) {}
  explicit operator float() const { return f16_to_float(bits); }
};

}  // namespace triptych
