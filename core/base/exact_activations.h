// Activations that cancel when they are written with exp and log alone, by the rules of
// exact_math.h: relative errors stay small however close to 0 the result is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/exact_math.h"

namespace triptych::exact {

/// e^x - 1 for x <= 0, within 2 ulp, in [-1, 0].
TRIPTYCH_ALWAYS_INLINE float expm1_of_negative(float x) {
  // x = n ln 2 + r as in exp: e^x - 1 = 2^n (e^r - 1) + (2^n - 1). The last term is exact.
  const float bounded = larger(x, -25.0F);
  const float shifted = std::fma(bounded, 1.44269504F, 12582912.0F);
  const float n = shifted - 12582912.0F;
  const float r = std::fma(n, 1.90465421e-9F, std::fma(n, -0.693147182F, bounded));
  float p = 0.0013926184F;
  p = std::fma(p, r, 0.00836317893F);
  p = std::fma(p, r, 0.0416665561F);
  p = std::fma(p, r, 0.166665763F);
  p = std::fma(p, r, 0.5F);
  const float power = from_bits(0x3F800000u + (bits_of(shifted) << 23));
  const float y = std::fma(power, std::fma(p, r * r, r), power - 1.0F);
  return select(x != x, kNan, y);
}

/// x > 0 ? x : alpha (e^x - 1).
TRIPTYCH_ALWAYS_INLINE float elu(float x, float alpha) {
  return select(x > 0, x, canonical(alpha * expm1_of_negative(select(x > 0, 0, x))));
}

/// log(1 + e^x) within 2 ulp.
TRIPTYCH_ALWAYS_INLINE float softplus(float x) {
  return canonical(select(x > 0, x, 0) + softplus_of_minus(x));
}

}  // namespace triptych::exact
