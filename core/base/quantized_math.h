// The arithmetic of the int8 contract, stated once for every backend: how a float32 becomes an
// int8, and how an int32 sum becomes one. Only IEEE operations and integers: the same bits
// everywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/host_device.h"

namespace triptych {

inline constexpr std::int32_t kMinRequantizeShift = 1;
inline constexpr std::int32_t kMaxRequantizeShift = 62;

/// `x / scale` by one IEEE division, then rounded to the nearest integer, ties to even, then cut to
/// [-128, 127]. A NaN gives 0. `scale` is a positive normal number.
TRIPTYCH_ALWAYS_INLINE std::int8_t quantize_to_i8(float x, float scale) {
  float value = x / scale;
  // Cutting first gives the same, as the bounds are integers. The selections do not branch.
  value = value < -128.0F ? -128.0F : value;
  value = value > 127.0F ? 127.0F : value;
  value = value == value ? value : 0.0F;
  // Adding 1.5 * 2^23 leaves no bit for a fraction: the addition rounds, ties to even.
  const float rounded = (value + 12582912.0F) - 12582912.0F;
  return static_cast<std::int8_t>(static_cast<std::int32_t>(rounded));
}

/// (sum * multiplier + 2^(shift - 1)) >> shift: sum * multiplier / 2^shift to the nearest integer,
/// ties towards +infinity. In 64 bits, which it cannot exceed. `shift` is cut to [1, 62].
TRIPTYCH_ALWAYS_INLINE std::int64_t requantize(std::int32_t sum, std::int32_t multiplier,
                                               std::int32_t shift) {
  shift = shift < kMinRequantizeShift ? kMinRequantizeShift : shift;
  shift = shift > kMaxRequantizeShift ? kMaxRequantizeShift : shift;
  const std::int64_t product = static_cast<std::int64_t>(sum) * multiplier;
  return (product + (std::int64_t{1} << (shift - 1))) >> shift;
}

/// `value` cut to [-128, 127].
TRIPTYCH_ALWAYS_INLINE std::int8_t saturate_to_i8(std::int64_t value) {
  value = value < -128 ? -128 : value;
  value = value > 127 ? 127 : value;
  return static_cast<std::int8_t>(value);
}

/// a + b modulo 2^32.
TRIPTYCH_ALWAYS_INLINE std::int32_t wrapping_add(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

}  // namespace triptych
