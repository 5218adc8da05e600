// The arithmetic of "Arithmetic" in docs/reference/mmu.md, in portable C++.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace triptych::mmu {

inline constexpr std::uint32_t kCanonicalNan = 0x7FC00000;

inline float canonical(float x) { return x == x ? x : std::bit_cast<float>(kCanonicalNan); }

/// Subnormals become zeros of the same sign. Reads bits, because under DAZ a comparison would not
/// tell them apart.
inline float flush(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & 0x7F800000) == 0 ? std::bit_cast<float>(bits & 0x80000000) : x;
}

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// To nearest even.
inline std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FC0;
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// A double's rounding to 24 bits with unbounded exponent. Then subnormal results become zero.
inline float round_and_flush(double x) {
  if (std::fabs(x) >= 0x1p-60 || x != x) return canonical(static_cast<float>(x));
  const float scaled = static_cast<float>(x * 0x1p100);
  if (std::fabs(scaled) < 0x1p-26F) return std::copysign(0.0F, scaled);
  return scaled * 0x1p-100F;
}

/// a b + c rounded once. Needs no FMA instruction: the product is exact in a double, and a double
/// sum rounded to odd can be rounded again.
inline float soft_fma(float a, float b, float c) {
  const double product = static_cast<double>(flush(a)) * flush(b);
  const double addend = flush(c);
  double sum = product + addend;
  if (std::isfinite(sum)) {
    const double back = sum - product;
    const double error = (product - (sum - back)) + (addend - back);
    auto bits = std::bit_cast<std::int64_t>(sum);
    if (error != 0 && (bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
    sum = std::bit_cast<double>(bits);
  }
  return round_and_flush(sum);
}

/// One binary32 multiplication under the same rules: exact in a double.
inline float soft_multiply(float a, float b) {
  return round_and_flush(static_cast<double>(flush(a)) * flush(b));
}

inline std::int32_t cut_to_i32(std::int64_t value) {
  return static_cast<std::int32_t>(
      std::clamp(value, std::int64_t{INT32_MIN}, std::int64_t{INT32_MAX}));
}

/// (sum * multiplier + 2^(shift - 1)) >> shift, cut to 32 bits. The shift is cut to [1, 62].
inline std::int32_t requantize(std::int32_t sum, std::int32_t multiplier, std::int32_t shift) {
  shift = std::clamp(shift, 1, 62);
  const std::int64_t product = std::int64_t{sum} * multiplier;
  return cut_to_i32((product + (std::int64_t{1} << (shift - 1))) >> shift);
}

/// One binary32 addition under the same rules.
inline float soft_add(float a, float b) {
  return round_and_flush(static_cast<double>(flush(a)) + flush(b));
}

}  // namespace triptych::mmu
