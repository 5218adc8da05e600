// One element of a sum over ranks, the same in a host's memory and in a GPU's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "core/base/exact_math.h"

namespace triptych::parallel {

/// a + b and a b, where subnormals count as zeros and a NaN is the one of exact_math.h, for every
/// mode of the thread or the GPU.
TRIPTYCH_ALWAYS_INLINE float plain_sum(float a, float b) {
  return exact::canonical(exact::flushed(exact::flushed(a) + exact::flushed(b)));
}
TRIPTYCH_ALWAYS_INLINE float plain_product(float a, float b) {
  return exact::canonical(exact::flushed(exact::flushed(a) * exact::flushed(b)));
}

/// a + b: integers wrap. bf16 and f16 are added as f32 and rounded.
template <class T>
TRIPTYCH_ALWAYS_INLINE T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return T(plain_sum(static_cast<float>(a), static_cast<float>(b)));
  }
}

}  // namespace triptych::parallel
