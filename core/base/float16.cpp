// SPDX-License-Identifier: Apache-2.0
#include "core/base/float16.h"

#include <cmath>

namespace triptych {

std::uint16_t f16_bits(float value) {
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

float f16_to_float(std::uint16_t bits) {
  const float sign = (bits & 0x8000u) != 0 ? -1.0F : 1.0F;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1p-24F;
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return sign * std::bit_cast<float>((wide << 23) | (mantissa << 13));
}

}  // namespace triptych
