// Elementary functions in float32 with the same bits on every backend. They use only +, -, *, /,
// fma and integer operations, which IEEE 754 defines exactly, and no branches, so that loops
// vectorise.
// A NaN gives the one quiet NaN 0x7FC00000. A result below 2^-126 is flushed to zero, and so is a
// subnormal argument of log and pow. Wants -ffp-contract=off (nvcc: -fmad=false) and IEEE division.
// Polynomials interpolate at Chebyshev nodes. Ulps in the comments are measured by the tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"

namespace triptych::exact {

inline constexpr float kInfinity = __builtin_inff();
inline constexpr float kNan = __builtin_bit_cast(float, 0x7FC00000u);
inline constexpr float kMinNormal = 0x1p-126F;

TRIPTYCH_ALWAYS_INLINE std::uint32_t bits_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
TRIPTYCH_ALWAYS_INLINE float from_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

/// `condition ? a : b` as bit operations: a conditional would be compiled to a branch around the
/// computation of a or b, which ends vectorisation.
TRIPTYCH_ALWAYS_INLINE float select(bool condition, float a, float b) {
  const std::uint32_t mask = -static_cast<std::uint32_t>(condition);
  return from_bits((bits_of(a) & mask) | (bits_of(b) & ~mask));
}

/// The same in double.
TRIPTYCH_ALWAYS_INLINE double select_wide(bool condition, double a, double b) {
  const std::uint64_t mask = -static_cast<std::uint64_t>(condition);
  return __builtin_bit_cast(double, (__builtin_bit_cast(std::uint64_t, a) & mask) |
                                        (__builtin_bit_cast(std::uint64_t, b) & ~mask));
}

/// x, with one canonical NaN for every NaN: processors differ in the NaN that an addition, product,
/// quotient or root gives.
TRIPTYCH_ALWAYS_INLINE float canonical(float x) { return select(x != x, kNan, x); }

/// max(x, 0): +0 for -0 and for a subnormal, which counts as zero. A NaN does not change. The
/// comparison is not with 0, because ptxas makes a maximum of such a choice. A maximum keeps
/// subnormals and changes the bits of a NaN.
TRIPTYCH_ALWAYS_INLINE float relu(float x) { return select(x < kMinNormal, 0.0F, x); }

/// x, but a zero of its sign for a subnormal.
TRIPTYCH_ALWAYS_INLINE float flushed(float x) {
  const std::uint32_t bits = bits_of(x);
  return from_bits((bits & 0x7F800000u) == 0 ? bits & 0x80000000u : bits);
}

/// -x by its sign bit: it does not flush a subnormal and keeps the bits of a NaN.
TRIPTYCH_ALWAYS_INLINE float negated(float x) { return from_bits(bits_of(x) ^ 0x80000000u); }

TRIPTYCH_ALWAYS_INLINE float absolute(float x) { return from_bits(bits_of(x) & 0x7FFFFFFFu); }

/// |x| with the sign of `sign`.
TRIPTYCH_ALWAYS_INLINE float with_sign(float x, float sign) {
  return from_bits((bits_of(x) & 0x7FFFFFFFu) | (bits_of(sign) & 0x80000000u));
}

/// The larger. b when either is NaN, as the comparison a > b is then false.
TRIPTYCH_ALWAYS_INLINE float larger(float a, float b) { return select(a > b, a, b); }
TRIPTYCH_ALWAYS_INLINE float smaller(float a, float b) { return select(a < b, a, b); }

/// e^x within 1 ulp.
TRIPTYCH_ALWAYS_INLINE float exp(float x) {
  // x = n ln 2 + r. Adding 1.5 * 2^23 rounds to the integer n and leaves it in the low bits.
  const float shifted = std::fma(x, 1.44269504F, 12582912.0F);
  const float n = shifted - 12582912.0F;
  const float r = std::fma(n, 1.90465421e-9F, std::fma(n, -0.693147182F, x));
  float p = 0.0013926184F;
  p = std::fma(p, r, 0.00836317893F);
  p = std::fma(p, r, 0.0416665561F);
  p = std::fma(p, r, 0.166665763F);
  p = std::fma(p, r, 0.5F);
  p = std::fma(p, r, 1.0F);
  p = std::fma(p, r, 1.0F);
  float y = from_bits(bits_of(p) + (bits_of(shifted) << 23));
  y = select(x > 88.72283F, kInfinity, y);
  y = select(x < -87.33654F, 0.0F, y);
  return select(x != x, kNan, y);
}

/// The natural logarithm within 1 ulp. log(0) = -inf, NaN below 0.
TRIPTYCH_ALWAYS_INLINE float log(float x) {
  // x = 2^e (1 + f) with 1 + f in [2/3, 4/3).
  const std::uint32_t exponent = (bits_of(x) - 0x3F2AAAABu) & 0xFF800000u;
  const float f = from_bits(bits_of(x) - exponent) - 1.0F;
  const float e = static_cast<float>(static_cast<std::int32_t>(exponent)) * 0x1p-23F;
  float p = -0.124222003F;
  p = std::fma(p, f, 0.13748309F);
  p = std::fma(p, f, -0.122887217F);
  p = std::fma(p, f, 0.140558124F);
  p = std::fma(p, f, -0.166733161F);
  p = std::fma(p, f, 0.200072333F);
  p = std::fma(p, f, -0.249999449F);
  p = std::fma(p, f, 0.333332717F);
  p = std::fma(p, f, -0.5F);
  float y = std::fma(e, 0.693147182F, std::fma(p, f * f, f));
  y = select(x < kMinNormal, -kInfinity, y);
  y = select(x == kInfinity, kInfinity, y);
  return select(!(x > -kMinNormal), kNan, y);
}

/// 1 / (1 + e^-x) within 3 ulp, in [0, 1].
TRIPTYCH_ALWAYS_INLINE float sigmoid(float x) {
  return select(x < -87.33654F, 0.0F, canonical(1.0F / (1.0F + exact::exp(-x))));
}

/// log(1 + e^-|x|), the part of softplus that cancellation threatens, within 2 ulp.
TRIPTYCH_ALWAYS_INLINE float softplus_of_minus(float x) {
  const float e = exact::exp(-absolute(x));
  const float u = 1.0F + e;
  return exact::log(u) + (e - (u - 1.0F)) / u;
}

/// Within 2 ulp, in [-1, 1].
TRIPTYCH_ALWAYS_INLINE float tanh(float x) {
  const float magnitude = absolute(x);
  const float s = x * x;
  float p = -0.00626911968F;
  p = std::fma(p, s, 0.0211109594F);
  p = std::fma(p, s, -0.0538739488F);
  p = std::fma(p, s, 0.133329153F);
  p = std::fma(p, s, -0.333333313F);
  const float small = std::fma(p * s, x, x);
  const float large = 1.0F - 2.0F / (exact::exp(2.0F * magnitude) + 1.0F);
  const float y = select(magnitude < 0.6F, small, with_sign(large, x));
  return select(x != x, kNan, y);
}

/// The error function within 2 ulp, in [-1, 1].
TRIPTYCH_ALWAYS_INLINE float erf(float x) {
  const float magnitude = absolute(x);
  const float s = x * x;
  float p = 8.33471859e-05F;
  p = std::fma(p, s, -0.000813470921F);
  p = std::fma(p, s, 0.00520036882F);
  p = std::fma(p, s, -0.0268591512F);
  p = std::fma(p, s, 0.112836912F);
  p = std::fma(p, s, -0.376126349F);
  p = std::fma(p, s, 0.128379166F);
  const float small = std::fma(p, x, x);
  // Beyond the middle 1 - erf(t) = exp(-t - t q(t)), which is below half an ulp of 1 from 3.95 on.
  const float t = smaller(magnitude, 3.95F);
  float q = -9.69442908e-07F;
  q = std::fma(q, t, 3.30596522e-05F);
  q = std::fma(q, t, -0.00048922014F);
  q = std::fma(q, t, 0.00426638313F);
  q = std::fma(q, t, -0.0250550155F);
  q = std::fma(q, t, 0.107745104F);
  q = std::fma(q, t, 0.634225428F);
  q = std::fma(q, t, 0.12888059F);
  const float large = 1.0F - exact::exp(-std::fma(q, t, t));
  const float y = select(magnitude < 0.92F, small, with_sign(large, x));
  return select(x != x, kNan, y);
}

namespace internal {

/// log2(x) in double for a normal x > 0, by 2 atanh((m - 1) / (m + 1)) / ln 2.
TRIPTYCH_ALWAYS_INLINE double log2_wide(float x) {
  const std::uint32_t exponent = (bits_of(x) - 0x3F2AAAABu) & 0xFF800000u;
  const double m = static_cast<double>(from_bits(bits_of(x) - exponent));
  const double e = static_cast<double>(static_cast<std::int32_t>(exponent)) * 0x1p-23;
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double p = 1.0 / 17;
  p = std::fma(p, s2, 1.0 / 15);
  p = std::fma(p, s2, 1.0 / 13);
  p = std::fma(p, s2, 1.0 / 11);
  p = std::fma(p, s2, 1.0 / 9);
  p = std::fma(p, s2, 1.0 / 7);
  p = std::fma(p, s2, 1.0 / 5);
  p = std::fma(p, s2, 1.0 / 3);
  p = std::fma(p, s2, 1.0);
  return std::fma(2.8853900817779268 * s, p, e);
}

/// 2^z in double for |z| <= 1000.
TRIPTYCH_ALWAYS_INLINE double exp2_wide(double z) {
  const double shifted = z + 0x1.8p52;
  const double r = (z - (shifted - 0x1.8p52)) * 0.69314718055994531;
  double p = 1.0 / 362880;
  p = std::fma(p, r, 1.0 / 40320);
  p = std::fma(p, r, 1.0 / 5040);
  p = std::fma(p, r, 1.0 / 720);
  p = std::fma(p, r, 1.0 / 120);
  p = std::fma(p, r, 1.0 / 24);
  p = std::fma(p, r, 1.0 / 6);
  p = std::fma(p, r, 0.5);
  p = std::fma(p, r, 1.0);
  p = std::fma(p, r, 1.0);
  const auto n = __builtin_bit_cast(std::uint64_t, shifted) << 52;
  return __builtin_bit_cast(double, __builtin_bit_cast(std::uint64_t, p) + n);
}

}  // namespace internal

/// x^y within 1 ulp, with the special cases of C's powf. The middle is computed in double: y log2 x
/// needs more bits than a float has.
TRIPTYCH_ALWAYS_INLINE float pow(float x, float y) {
  const float magnitude = absolute(x);
  const float whole = smaller(absolute(y), 0x1p24F);
  const auto integer = static_cast<std::int32_t>(whole);
  const bool integral = static_cast<float>(integer) == whole;
  const std::uint32_t odd = static_cast<std::uint32_t>(integer) << 31;  // the sign bit, or 0
  const double infinity = static_cast<double>(kInfinity);
  double logarithm = internal::log2_wide(magnitude);
  logarithm = select_wide(magnitude < kMinNormal, -infinity, logarithm);
  logarithm = select_wide(magnitude == kInfinity, infinity, logarithm);
  double z = static_cast<double>(y) * logarithm;
  z = select_wide(z > 200.0, 200.0, z);
  z = select_wide(z > -200.0, z, -200.0);
  float power = static_cast<float>(internal::exp2_wide(z));
  power = select(power < kMinNormal, 0.0F, power);
  power = select(magnitude == 1.0F, 1.0F, power);
  power = select(integral, from_bits(bits_of(power) | (bits_of(x) & odd)), power);
  const bool negative_root = (x <= -kMinNormal) & (x != -kInfinity) & !integral;
  power = select(negative_root | (x != x) | (y != y), kNan, power);
  return select((y == 0.0F) | (x == 1.0F), 1.0F, power);
}

}  // namespace triptych::exact
